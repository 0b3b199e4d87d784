/** What this page saw happen: conditions that came and went, links, detections of cameras. Kept in memory while the page is open. */
import { field, listIn, own, textIn } from '../../json.ts';
import { t } from '../../words/words.ts';
import { detection_feeds, levelOfVehicle } from '../detections.ts';
import { addressOf } from '../route.ts';
import { label } from '../text.ts';
import { fieldOf } from '../world.ts';
import type { Entry, ServerFrame, World } from '../../types.d.ts';

interface Condition {
  readonly key: string;
  readonly title: string;
  readonly level: 'bad' | 'warn';
}

const entries_max = 300;

export class Log {
  /** newest first */
  entries: Entry[] = [];
  #open: Map<string, Entry> = new Map();
  #isFirst = true;

  /**
   * Opens an entry for each new condition and closes ended ones. What lasted already when the page was opened has no
   * known beginning and is entered as a change only when it ends.
   */
  follow(conditions: readonly (Condition & { readonly href: string })[], time_ms: number) {
    const now = new Set(conditions.map(({ key }) => key));
    for (const { key, title, level, href } of conditions) {
      if (this.#open.has(key)) continue;
      const entry: Entry = { key, kind: 'alarm', level, title, since_ms: time_ms, until_ms: null, href };
      this.#open.set(key, entry);
      if (!this.#isFirst) this.add(entry);
    }
    for (const [key, entry] of this.#open) {
      if (now.has(key)) continue;
      this.#open.delete(key);
      const ended = { ...entry, until_ms: time_ms };
      const at = this.entries.indexOf(entry);
      if (at >= 0) this.entries[at] = ended;
    }
    this.#isFirst = false;
  }

  add(entry: Entry) {
    this.entries.unshift(entry);
    this.entries.length = Math.min(this.entries.length, entries_max);
  }
}

/** @param world as it is before the frame */
export function seenEntry(frame: ServerFrame, world: World): Entry | undefined {
  if (frame.type !== 'feed') return undefined;
  const before = world.feeds.get(frame.asset_id)?.[frame.feed];
  const begins = fieldOf(frame.message, 'detected') === true && fieldOf(before, 'detected') !== true;
  if (frame.feed !== 'alarm' && !(detection_feeds.has(frame.feed) && begins)) return undefined;
  const what = detectionText(frame.feed, frame.message.data);
  const name = world.assets.get(frame.asset_id)?.name ?? '';
  return {
    key: `seen ${frame.asset_id} ${frame.feed}`,
    kind: 'seen',
    level: levelOfVehicle(frame.feed, fieldOf(frame.message, 'severity')) ?? 'info',
    title: `${name}: ${what}`,
    since_ms: Date.parse(frame.message.time),
    until_ms: null,
    href: addressOf('asset', world.kit?.kit_id ?? null, frame.asset_id),
  };
}

/** What a camera recognised; foreign words are not sanitised yet. */
export function typesOf(data: unknown): readonly string[] {
  return listIn(field(data, 'types')).map((type) => own(t.seen, String(type)) ?? String(type));
}

/** What was detected in words; foreign parts are not sanitised yet. */
export function detectionText(feed: string, data: unknown): string {
  const text = textIn(field(data, 'text'));
  if (feed === 'alarm' && text !== '') return text;
  if (feed === 'failsafe') return failsafeText(data);
  const types = typesOf(data);
  const inputs = listIn(field(data, 'inputs')).map(String);
  const word = own(t.history.event, feed) ?? label(feed);
  if (types.length > 0) return types.join(', ');
  return inputs.length > 0 ? `${word}: ${inputs.join(', ')}` : word;
}

/** Which failsafes are active. */
export function failsafeText(data: unknown): string {
  const types = listIn(field(data, 'types')).map(
    (type) => own(t.drone.failsafeOf, String(type)) ?? String(type),
  );
  return `${t.drone.failsafe}: ${types.join(', ')}`;
}
