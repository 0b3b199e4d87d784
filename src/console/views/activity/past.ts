/** The activity that the history holds: pages of events, the filter, and their sentences. */
import { eventsOf, nextOf } from '../../world/history/events.ts';
import type { Event, Older, View } from '../../types.d.ts';
import { ask, reasonOf } from '../../world/api.ts';
import { textIn } from '../../json.ts';
import { levelOfVehicle } from '../../world/detections.ts';
import { assetName } from '../../world/names.ts';
import { detectionText } from '../../world/history/log.ts';
import { t } from '../../words/words.ts';

export const filters = ['all', 'alarm', 'link', 'task', 'seen'] as const;
const types: Readonly<Record<string, readonly string[]>> = {
  all: [],
  alarm: [
    'asset_status',
    'link_status',
    'state',
    'tamper',
    'doorbell',
    'digital_input',
    'picture_fault',
    'storage_fault',
    'drops',
  ],
  link: ['link_status'],
  task: ['task'],
  seen: ['motion', 'ai_detection', 'sound'],
};
const page_rows = 100;
const export_page_rows = 1_000;
export const export_rows_max = 20_000;
const back_ms = 400 * 86_400_000;
const step_ms = 15_000;

/** `path`: the question, to which a cursor is added. */
export interface Past {
  readonly events: readonly Event[];
  readonly next: string | null;
  readonly path: string;
  readonly isLoading: boolean;
  readonly fault: string;
}

/** The query of the chosen filter, without its bounds. */
function filterOf(view: View) {
  const { choices } = view;
  const wanted = types[choices.log_filter] ?? [];
  const asset = choices.log_asset === '' || isFleet(view) ? '' : `&assets=${choices.log_asset}`;
  return `${wanted.length === 0 ? '' : `&types=${wanted.join(',')}`}${asset}`;
}

/** The fleet's log is that of all kits. */
export function isFleet({ route }: View) {
  return route.screen === 'log';
}

function baseOf(view: View) {
  return isFleet(view) ? '/api' : '';
}

/** @param rows of a page */
function questionOf(view: View, rows: number) {
  const to_ms = Math.ceil(view.time_ms / step_ms) * step_ms;
  return `${baseOf(view)}/events?limit=${rows}${filterOf(view)}&from=${to_ms - back_ms}&to=${to_ms}`;
}

/** The newest page, which is read again every 15 s, and the older ones that were loaded. */
export function pastOf(view: View): Past {
  const of = `${baseOf(view)}${filterOf(view)}`;
  const { value, path, fault, isLoading } = view.history.read(
    view,
    `activity ${of}`,
    questionOf(view, page_rows),
  );
  const { older } = view.choices;
  const newest = eventsOf(value);
  if (older?.of === of && older.kit_id === view.choices.kit_id) {
    const known = new Set(older.events.map(({ id }) => id));
    const events = [...newest.filter(({ id }) => !known.has(id)), ...older.events];
    return { ...older, events };
  }
  return { events: newest, next: nextOf(value), path, isLoading, fault };
}

/** Loads the next page. */
export async function loadOlder(view: View, { events, next, path, isLoading }: Past) {
  const { choices, act } = view;
  if (next === null || isLoading) return;
  const { kit_id } = choices;
  const before: Older = {
    of: `${baseOf(view)}${filterOf(view)}`,
    kit_id,
    events,
    next,
    path,
    isLoading: true,
    fault: '',
  };
  choices.older = before;
  act.changed();
  let after = before;
  try {
    const page = await ask('GET', `${path}&cursor=${next}`);
    after = { ...before, events: [...events, ...eventsOf(page)], next: nextOf(page) };
  } catch (error) {
    after = { ...before, fault: reasonOf(error, t.trouble.noAnswer) };
  }
  // Another filter may have been chosen meanwhile.
  if (choices.older === before) choices.older = { ...after, isLoading: false };
  act.changed();
}

/** All events of the chosen filter, newest first, up to 20,000. Throws when the service does not answer. */
export async function allEvents(view: View): Promise<readonly Event[]> {
  const kit = isFleet(view) ? '' : `/api/kits/${view.choices.kit_id}`;
  const path = `${kit}${questionOf(view, export_page_rows)}`;
  const events: Event[] = [];
  let cursor = '';
  do {
    const page = await ask('GET', `${path}${cursor}`);
    events.push(...eventsOf(page));
    const next = nextOf(page);
    cursor = next === null ? '' : `&cursor=${next}`;
  } while (cursor !== '' && events.length < export_rows_max);
  return events;
}

/** The end of what was seen adds nothing. */
export function isShown({ type, data }: Event) {
  return type !== 'task' && data['detected'] !== false;
}

/** @returns the event as a sentence; names in it are not sanitised yet */
export function eventText({ type, kit_id, asset_id, data }: Event, view: View): string {
  const { world } = view;
  const asset = kit_id === '' ? (world.assets.get(asset_id)?.name ?? '') : assetName(view, kit_id, asset_id);
  const reason = textIn(data['reason']) === '' ? '' : `: ${textIn(data['reason'])}`;
  if (type === 'state')
    return `${data['online'] === true ? t.history.kitOnline : t.history.kitOffline}${reason}`;
  if (type === 'link_status')
    return `${linkName(String(data['name']), world)}: ${stateText(data['status'])}${reason}`;
  if (type === 'asset_status') return `${asset}: ${stateText(data['status'])}${reason}`;
  const what = detectionText(type, data);
  return asset === '' ? what : `${asset}: ${what}`;
}

function linkName(wire: string, { kit }: View['world']) {
  const isp = kit?.wans.find(({ name }) => name === wire)?.isp;
  return isp ? `${isp} (${wire})` : wire;
}

function stateText(status: unknown) {
  if (status === 'online' || status === 'offline' || status === 'standby') return t.state[status];
  return String(status);
}

const warnings: ReadonlySet<string> = new Set(['tamper', 'picture_fault', 'storage_fault', 'drops']);

/** How serious an event is. */
export function levelOf({ type, data }: Event): 'bad' | 'warn' | 'info' {
  if (type === 'state') return data['online'] === false ? 'bad' : 'info';
  const its = levelOfVehicle(type, data['severity']);
  if (its) return its;
  if (warnings.has(type)) return 'warn';
  return data['status'] === 'offline' ? 'warn' : 'info';
}
