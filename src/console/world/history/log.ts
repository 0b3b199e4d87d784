/** What this page saw happen: conditions that came and went, links, detections of cameras. Kept in memory while the page is open. */
import { own } from '../../json.ts';
import { t } from '../../words/words.ts';
import { addressOf } from '../route.ts';
import { fieldOf } from '../world.ts';
import type { Entry, FeedMessage, ServerFrame, World } from '../../types.d.ts';

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
  if (frame.type !== 'feed' || (frame.feed !== 'motion' && frame.feed !== 'ai_detection')) return undefined;
  const before = world.feeds.get(frame.asset_id)?.[frame.feed];
  if (fieldOf(frame.message, 'detected') !== true || fieldOf(before, 'detected') === true) return undefined;
  const what = whatOf(frame.message);
  const name = world.assets.get(frame.asset_id)?.name ?? '';
  return {
    key: `seen ${frame.asset_id} ${frame.feed}`,
    kind: 'seen',
    level: 'info',
    title: `${name}: ${what}`,
    since_ms: Date.parse(frame.message.time),
    until_ms: null,
    href: addressOf('asset', world.kit?.kit_id ?? null, frame.asset_id),
  };
}

function whatOf(message: FeedMessage): string {
  const types = fieldOf(message, 'types');
  if (!Array.isArray(types) || types.length === 0) return t.camera.motion;
  return types.map((type) => own(t.seen, String(type)) ?? String(type)).join(', ');
}
