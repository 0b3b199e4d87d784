/** Interfaces of the outbox for the other rooms. `openOutbox` (outbox.ts) gives all of it; each caller names the part it uses. */
import type { Position } from '../../contract/envelope.ts';
import type { JsonObject } from '../../contract/json.ts';
import type { Lane } from '../../contract/lanes.ts';
import type { Stamp } from '../../platform/clock.ts';
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
  /** It is sent, and shown to the local parts, only once it is on disk: also while the disk fails. */
  readonly from_disk_only?: boolean;
  /** It may wait: sent when nothing live waits, and no more important message for the disk, at the pace of the backlog. */
  readonly is_behind?: boolean;
}

export interface Appender {
  /** Takes a message for delivery and gives it its number. Never blocks and never throws: limits show in the counters. */
  append(draft: Draft): Position;
}

/** The storage of a task's final entry. */
export interface Conclusion {
  /** Settles with the first attempt: rejects with `StorageUnavailable` when the disk refused it. */
  readonly tried: Promise<void>;
  /** Resolves once entry and report are on disk, which is attempted until the outbox closes. */
  readonly stored: Promise<void>;
}

/** The durable memory of tasks. */
export interface Journal {
  /**
   * Journals a dispatch; resolves once it is on disk, with the entry that was known if the task id was known already.
   * Rejects with `StorageUnavailable` when the disk write fails: the dispatch must then not be executed.
   */
  admit(entry: JournalEntry): Promise<JournalEntry | undefined>;
  /**
   * Journals a transition together with the message that reports it, in one commit; resolves once it is on disk.
   * Rejects with `StorageUnavailable`; the message is sent from memory all the same.
   */
  record(entry: JournalEntry, report: Draft): Promise<void>;
  /**
   * Journals the end of a task together with its report, in one commit. What is final must never be contradicted by a
   * later run, so the report leaves only from disk.
   */
  conclude(entry: JournalEntry, report: Draft): Conclusion;
  find(task_id: string): Promise<JournalEntry | undefined>;
  list(limit: number): Promise<readonly JournalEntry[]>;
  /** Tasks that an earlier run left pending or running, oldest first. */
  readonly left_open: readonly JournalEntry[];
}

/**
 * Which acknowledgement releases a sync message from the buffer: the broker's PUBACK, the cloud's `down/ack`, or (`auto`)
 * the cloud's as soon as it has sent one.
 */
export type AckRule = 'auto' | 'broker' | 'cloud';

export interface OutboxLog {
  info(facts: object, sentence: string): void;
  warn(facts: object, sentence: string): void;
  error(facts: object, sentence: string): void;
}
