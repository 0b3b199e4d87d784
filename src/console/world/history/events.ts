/** Events of the history: what they are, and which of them belong together. */
import { field, isJsonObject, isRecord, listIn, textIn } from '../../json.ts';
import { spanQuery, type Span } from './history.ts';
import type { Event, TaskResource, View } from '../../types.d.ts';

const page_rows = 1_000;

/**
 * Events of these types in this time, oldest first; the newest 1,000 of them.
 * @returns `isCut`: there are older ones
 */
export function eventsNow(
  view: View,
  {
    name,
    types,
    asset_id,
    span,
  }: {
    readonly name: string;
    readonly types: readonly string[];
    readonly asset_id?: string;
    readonly span: Span;
  },
): {
  readonly events: readonly Event[];
  readonly isCut: boolean;
  readonly isLoading: boolean;
  readonly fault: string;
} {
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
 * @param page of `/events`
 * @returns the cursor of the page with older events; null where there is none
 */
export function nextOf(page: unknown): string | null {
  const next = field(page, 'next');
  return typeof next === 'string' ? next : null;
}

const read: WeakMap<object, readonly Event[]> = new WeakMap();

/**
 * Reads a page once, although it is drawn four times a second.
 * @param page of `/events`
 */
export function eventsOf(page: unknown): readonly Event[] {
  if (!isRecord(page)) return [];
  const events = read.get(page) ?? readEvents(page);
  read.set(page, events);
  return events;
}

function readEvents(page: unknown): readonly Event[] {
  return listIn(field(page, 'events')).flatMap((each) => {
    const data = field(each, 'data');
    const time_ms = Date.parse(textIn(field(each, 'time')));
    const type = textIn(field(each, 'type'));
    const asset_id = textIn(field(each, 'asset_id'));
    const kit_id = textIn(field(each, 'kit_id'));
    if (Number.isNaN(time_ms) || !isRecord(data)) return [];
    return [
      {
        time_ms,
        type,
        kit_id,
        asset_id,
        data,
        id: `${time_ms} ${type} ${kit_id} ${asset_id} ${JSON.stringify(data)}`,
      },
    ];
  });
}

export interface Interval {
  readonly name: string;
  readonly since_ms: number;
  readonly until_ms: number | null;
  readonly reason: string;
}

/**
 * The times in which something lasted, newest first.
 * @param events oldest first
 * @param statesOf whether each thing lasts from this event on
 */
export function intervalsOf(
  events: readonly Event[],
  statesOf: (data: Event['data'], type: string) => Readonly<Record<string, boolean>>,
): readonly Interval[] {
  const open: Map<string, Interval> = new Map();
  const ended: Interval[] = [];
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
 * @param events `link_status`, oldest first
 */
export function interruptionsOf(events: readonly Event[]) {
  return intervalsOf(events, (data) => ({ [textIn(data['name'])]: data['status'] === 'offline' }));
}

/**
 * Tasks as their reports describe them, each with its newest state. The service's own list has more of the newest ones.
 * @param events newest first
 */
export function tasksOf(events: readonly Event[]): readonly TaskResource[] {
  const tasks: Map<string, TaskResource> = new Map();
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

const statuses: Readonly<Record<string, TaskResource['status']>> = {
  completed: 'completed',
  failed: 'failed',
  running: 'running',
};

function taskOf(id: string, time: string, data: Event['data']): TaskResource {
  const origin = data['origin'];
  const user = field(origin, 'user');
  return {
    id,
    asset_id: textIn(data['asset_id']),
    command_name: textIn(data['command_name']),
    status: statuses[textIn(data['status'])] ?? 'pending',
    payload: isJsonObject(data['payload']) ? data['payload'] : {},
    result: isJsonObject(data['result']) ? data['result'] : {},
    created_at: time,
    updated_at: time,
    ...(typeof user === 'string' && { requested_by_name: user }),
  };
}

const ai_types = ['people', 'vehicle', 'dog_cat', 'face', 'package'];

/** What lasts from this event on. */
export function detectionsOf(data: Event['data'], type: string): Readonly<Record<string, boolean>> {
  const isSeen = data['detected'] === true;
  if (type !== 'ai_detection') return { [type]: isSeen };
  const types = isSeen ? listIn(data['types']).map(String) : [];
  return Object.fromEntries([...ai_types, ...types].map((each) => [each, types.includes(each)]));
}
