/**
 * A quarantine for packed batches that crash their reader. The broker delivers such a message again after each restart. One
 * that was being read when the process ended is therefore read in a separate thread first: if that crashes too, it is
 * quarantined by its digest: saved in a file, logged, acknowledged, not read. A kill or a power cut alone condemns nothing.
 */
import { createHash } from 'node:crypto';
import { closeSync, ftruncateSync, mkdirSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../errors.ts';
import type { ServiceLog } from '../service-log.ts';
import { tryReading } from './trial.ts';
import { texts } from '../texts.ts';
import { readTextUpToSync, small_bytes_max } from '../../platform/bounded-file.ts';
import { watchPlaces } from '../../platform/files/file-identity.ts';

/** Ends of the process, without a complete reading between them, after which a message is quarantined whatever the trial gives. */
const ends_max = 3;
/** Digests that are stored, one per crash; the oldest is evicted. */
const digests_max = 64;
/** Messages that are saved for analysis. */
const kept_max = 16;

export class SetAside {
  readonly #dir: string;
  readonly #log: ServiceLog;
  readonly #digests: string[];
  /** Holds the digest of what is being read. */
  #reading: number;
  /** Whether the file was deleted or replaced since it was opened. */
  #displaced: () => readonly string[];
  readonly #trial: typeof tryReading;
  #kept = 0;
  #isClosed = false;

  /**
   * Opens `dir`, and counts the message that was being read when the previous process ended. `trial` reads a suspect apart
   * from the process. Throws file system errors.
   */
  constructor(dir: string, log: ServiceLog, trial: typeof tryReading = tryReading) {
    this.#dir = dir;
    this.#log = log;
    this.#trial = trial;
    mkdirSync(dir, { recursive: true, mode: 0o750 });
    this.#digests = linesOf(join(dir, 'digests'));
    const [left] = linesOf(join(dir, 'reading'));
    if (left !== undefined && !this.#isAside(left)) {
      this.#digests.push(left);
      this.#remember();
      if (this.#isAside(left)) {
        log.error({ digest: left }, texts.log_crashed_process);
      }
    }
    this.#reading = this.#open();
    this.#displaced = watchPlaces([join(dir, 'reading')]);
  }

  /** Calls `read`; resolves with undefined for a quarantined message. One call at a time. */
  async guard<T>(topic: string, payload: Uint8Array, read: () => T | Promise<T>): Promise<T | undefined> {
    const digest = createHash('sha256').update(payload).digest('hex');
    if (!this.#isClosed && this.#displaced().length > 0) {
      closeSync(this.#reading);
      this.#reading = this.#open();
      this.#displaced = watchPlaces([join(this.#dir, 'reading')]);
    }
    if (this.#isAside(digest)) {
      this.#keep(digest, topic, payload);
      return undefined;
    }
    const isSuspect = this.#digests.includes(digest);
    // Without a mark: a trial cannot end the process, and is long enough to be killed in every time.
    if (isSuspect && (await this.#isCondemned(digest, topic, payload))) return undefined;
    if (!this.#isClosed) writeSync(this.#reading, digest, 0);
    try {
      return await read();
    } finally {
      if (!this.#isClosed) ftruncateSync(this.#reading);
      if (isSuspect) this.#clear(digest);
    }
  }

  /** Whether the suspect crashed the reader of its trial, and is quarantined now. */
  async #isCondemned(digest: string, topic: string, payload: Uint8Array): Promise<boolean> {
    const reason = await this.#trial(topic, payload);
    if (reason === undefined) return false;
    this.#digests.push(...Array<string>(ends_max).fill(digest));
    this.#remember();
    this.#log.error({ topic, digest, reason }, texts.log_crashed_reader);
    this.#keep(digest, topic, payload);
    return true;
  }

  /** A kill or a power cut ends the process as well; without a trial only the same message three times is proof. */
  #isAside(digest: string): boolean {
    return this.#digests.filter((each) => each === digest).length >= ends_max;
  }

  /** Removes the digest: the message was read completely, so it did not cause the crash. */
  #clear(digest: string): void {
    this.#digests.splice(0, this.#digests.length, ...this.#digests.filter((each) => each !== digest));
    this.#remember();
  }

  /** Written without a sync: it has to outlive the process, not the machine. */
  #open(): number {
    mkdirSync(this.#dir, { recursive: true, mode: 0o750 });
    return openSync(join(this.#dir, 'reading'), 'w', 0o640);
  }

  #remember(): void {
    writeFileSync(join(this.#dir, 'digests'), this.#digests.slice(-digests_max).join('\n'), { mode: 0o640 });
  }

  close(): void {
    this.#isClosed = true;
    ftruncateSync(this.#reading);
    closeSync(this.#reading);
  }

  #keep(digest: string, topic: string, payload: Uint8Array): void {
    const facts = { topic, digest, bytes: payload.length };
    this.#log.error(facts, texts.log_quarantined_again);
    if (this.#kept >= kept_max) return;
    this.#kept += 1;
    try {
      writeFileSync(join(this.#dir, `${digest}.batch`), payload, { mode: 0o640 });
    } catch (error) {
      this.#log.warn({ digest, reason: messageOf(error) }, texts.log_quarantine_unsaved);
    }
  }
}

function linesOf(file: string): string[] {
  try {
    return readTextUpToSync(file, small_bytes_max)
      .split('\n')
      .filter((line) => /^[0-9a-f]{64}$/u.test(line))
      .slice(-digests_max);
  } catch {
    return [];
  }
}
