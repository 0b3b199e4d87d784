/** An outbox that keeps every draft in memory and lets a test await one. */
import { EventEmitter } from 'node:events';
import type { Appender, Draft } from '../../src/kit/outbox/api.ts';
import { within } from '../../src/platform/time.ts';

export interface RecordingOutbox extends Appender {
  readonly drafts: readonly Draft[];
  /** Data of the drafts of this channel, oldest first. */
  on(channel: string): readonly unknown[];
  /** The first draft that fits, kept already or yet to come; rejects after `deadline_ms`. */
  until(fits: (draft: Draft) => boolean, deadline_ms?: number): Promise<Draft>;
  /** Forgets what was kept. */
  clear(): void;
}

export function recordingOutbox(): RecordingOutbox {
  const drafts: Draft[] = [];
  const appended = new EventEmitter<{ draft: [Draft] }>().setMaxListeners(100);
  return {
    drafts,
    append(draft) {
      JSON.stringify(draft);
      drafts.push(draft);
      appended.emit('draft', draft);
      return { epoch: 1, seq: drafts.length };
    },
    on: (channel) => drafts.filter((draft) => draft.channel === channel).map((draft) => draft.data),
    async until(fits, deadline_ms = 60_000) {
      const kept = drafts.find(fits);
      if (kept) return kept;
      let check: ((draft: Draft) => void) | undefined;
      const coming = new Promise<Draft>((resolve) => {
        check = (draft) => {
          if (fits(draft)) resolve(draft);
        };
        appended.on('draft', check);
      });
      const found = await within(deadline_ms, coming);
      if (check) appended.off('draft', check);
      if (!found)
        throw new Error(
          `no such message within ${deadline_ms} ms; the last: ${JSON.stringify(drafts.at(-1))}`,
        );
      return found;
    },
    clear: () => drafts.splice(0),
  };
}
