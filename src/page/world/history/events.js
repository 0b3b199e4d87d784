/** Events of the history: what they are, and which of them belong together. */
import { field, isRecord, listIn, textIn } from '../json.js';
import { spanQuery } from './history.js';

/** @import { TaskResource, View } from '../../types.d.ts' */
/** @import { Span } from './history.js' */

/** @typedef {{ readonly time_ms: number, readonly type: string, readonly asset_id: string, readonly id: string, readonly data: Readonly<Record<string, unknown>> }} Event */

const page_rows = 1_000;

/**
 * Events of these types in this time, oldest first; the newest 1,000 of them.
 * @param {View} view
 * @param {{ readonly name: string, readonly types: readonly string[], readonly asset_id?: string, readonly span: Span }} about
 * @returns {{ readonly events: readonly Event[], readonly isCut: boolean, readonly isLoading: boolean, readonly fault: string }} `isCut`: there are older ones
 */
export function eventsNow(view, { name, types, asset_id, span }) {
  const assets = asset_id === undefined ? '' : `&assets=${asset_id}`;
  const answer = view.history.read(
    view,
    `events ${name} ${span.hours}`,
    `/events?types=${types.join(',')}${assets}&limit=${page_rows}&${spanQuery(span)}`,
  );
  const { value, fault, isLoading } = answer;
  return {
    events: eventsOf(value).toReversed(),
    isCut: nextOf(value) !== null,
    isLoading,
    fault,
  };
}

/**
 * @param {unknown} page of `/events`
 * @returns {string | null} the cursor of the page with older events; null where there is none
 */
export function nextOf(page) {
  const next = field(page, 'next');
  return typeof next === 'string' ? next : null;
}

/** @type {WeakMap<object, readonly Event[]>} */
const read = new WeakMap();

/**
 * Reads a page once, although it is drawn four times a second.
 * @param {unknown} page of `/events`
 * @returns {readonly Event[]}
 */
export function eventsOf(page) {
  if (!isRecord(page)) return [];
  const events = read.get(page) ?? readEvents(page);
  read.set(page, events);
  return events;
}

/**
 * @param {unknown} page
 * @returns {readonly Event[]}
 */
function readEvents(page) {
  return listIn(field(page, 'events')).flatMap((each) => {
    const data = field(each, 'data');
    const time_ms = Date.parse(textIn(field(each, 'time')));
    const type = textIn(field(each, 'type'));
    const asset_id = textIn(field(each, 'asset_id'));
    if (Number.isNaN(time_ms) || !isRecord(data)) return [];
    return [{ time_ms, type, asset_id, data, id: `${time_ms} ${type} ${asset_id} ${JSON.stringify(data)}` }];
  });
}

/** @typedef {{ readonly name: string, readonly since_ms: number, readonly until_ms: number | null, readonly reason: string }} Interval */

/**
 * The times in which something lasted, newest first.
 * @param {readonly Event[]} events oldest first
 * @param {(data: Event['data'], type: string) => Readonly<Record<string, boolean>>} statesOf whether each thing lasts from this event on
 * @returns {readonly Interval[]}
 */
export function intervalsOf(events, statesOf) {
  /** @type {Map<string, Interval>} */
  const open = new Map();
  /** @type {Interval[]} */
  const ended = [];
  for (const { time_ms, type, data } of events) {
    for (const [name, isOn] of Object.entries(statesOf(data, type))) {
      const known = open.get(name);
      const reason = textIn(data['reason']);
      if (isOn && !known) open.set(name, { name, since_ms: time_ms, until_ms: null, reason });
      if (isOn || !known) continue;
      open.delete(name);
      ended.push({ ...known, until_ms: time_ms });
    }
  }
  return [...open.values(), ...ended].sort((a, b) => b.since_ms - a.since_ms);
}

/**
 * The times in which links were offline, newest first.
 * @param {readonly Event[]} events `link_status`, oldest first
 */
export function interruptionsOf(events) {
  return intervalsOf(events, (data) => ({ [textIn(data['name'])]: data['status'] === 'offline' }));
}

/**
 * Tasks as their reports describe them, each with its newest state. The service's own list has more of the newest ones.
 * @param {readonly Event[]} events newest first
 * @returns {readonly TaskResource[]}
 */
export function tasksOf(events) {
  /** @type {Map<string, TaskResource>} */
  const tasks = new Map();
  for (const { type, time_ms, data } of events) {
    const id = textIn(data['task_id']);
    if (type !== 'task') continue;
    const time = new Date(time_ms).toISOString();
    const known = tasks.get(id);
    if (known) tasks.set(id, { ...known, created_at: time });
    else tasks.set(id, taskOf(id, time, data));
  }
  return [...tasks.values()];
}

/** @type {Readonly<Record<string, TaskResource['status']>>} */
const statuses = { completed: 'completed', failed: 'failed', running: 'running' };

/**
 * @param {string} id
 * @param {string} time
 * @param {Event['data']} data
 * @returns {TaskResource}
 */
function taskOf(id, time, data) {
  const origin = data['origin'];
  const user = field(origin, 'user');
  return {
    id,
    asset_id: textIn(data['asset_id']),
    command_name: textIn(data['command_name']),
    status: statuses[textIn(data['status'])] ?? 'pending',
    payload: objectIn(data['payload']),
    result: objectIn(data['result']),
    created_at: time,
    updated_at: time,
    ...(typeof user === 'string' && { requested_by_name: user }),
  };
}

/**
 * @param {unknown} value
 * @returns {TaskResource['result']}
 */
function objectIn(value) {
  return isJson(value) ? value : {};
}

/**
 * The service sends JSON only.
 * @param {unknown} value
 * @returns {value is TaskResource['result']}
 */
function isJson(value) {
  return isRecord(value);
}

const ai_types = ['people', 'vehicle', 'dog_cat', 'face', 'package'];

/**
 * What lasts from this event on.
 * @param {Event['data']} data
 * @param {string} type
 * @returns {Readonly<Record<string, boolean>>}
 */
export function detectionsOf(data, type) {
  const isSeen = data['detected'] === true;
  if (type !== 'ai_detection') return { [type]: isSeen };
  const types = isSeen ? listIn(data['types']).map(String) : [];
  return Object.fromEntries([...ai_types, ...types].map((each) => [each, types.includes(each)]));
}
