/** What the other rooms ask of the outbox. `openOutbox` (outbox.ts) gives all of it; each caller names the part it uses. */
import type { Position } from '../contract/envelope.ts';
import type { JsonObject } from '../contract/json.ts';
import type { Lane } from '../contract/lanes.ts';
import type { Stamp } from '../platform/clock.ts';
import type { JournalEntry } from './protocol.ts';

/** A message before it has its number. */
export interface Draft {
  /** The part of the topic below `k1/{kit_id}/up/`, from `channels` of the contract. */
  readonly channel: string;
  readonly lane: Lane;
  /** Null clears a retained topic. */
  readonly data: JsonObject | null;
  /** When it was observed; now when left out. */
  readonly stamp?: Stamp;
}

export interface Appender {
  /** Takes a message for delivery and gives it its number. Never blocks and never throws: limits show in the counters. */
  append(draft: Draft): Position;
}

/** The durable memory of tasks. */
export interface Journal {
  /**
   * Journals a dispatch; resolves once it is on disk, with the entry that was known if the task id was known already.
   * Rejects with `StorageUnavailable` when the disk does not take it: then nobody may act on the dispatch.
   */
  admit(entry: JournalEntry): Promise<JournalEntry | undefined>;
  /**
   * Journals a transition together with the message that reports it, in one commit; resolves once it is on disk.
   * Rejects with `StorageUnavailable`; the message is sent from memory all the same.
   */
  record(entry: JournalEntry, report: Draft): Promise<void>;
  find(task_id: string): Promise<JournalEntry | undefined>;
  list(limit: number): Promise<readonly JournalEntry[]>;
  /** Tasks that an earlier run left pending or running, oldest first. */
  readonly left_open: readonly JournalEntry[];
}
