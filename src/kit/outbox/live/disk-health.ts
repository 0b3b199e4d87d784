/** What is known of the disk and of the file on it. */
import { messageOf, StorageUnavailable } from '../../../platform/errors.ts';
import type { OutboxLog } from '../api.ts';
import { type DiskHealth, type Done, failing, type Opened, type Salvage } from '../protocol.ts';
import { texts } from '../texts.ts';
import { every } from '../../../platform/time.ts';
import type { StoreClient } from './store-client.ts';

const salvage_sentences: Readonly<Record<Salvage['kind'], string>> = {
  damaged: texts.file_damaged,
  too_new: texts.file_too_new,
  other_kit: texts.file_other_kit,
  replaced: texts.file_replaced,
};

/** The health of the disk, as the requests to the store show it; logs every change once. */
export class DiskState {
  readonly #log: OutboxLog;
  #health: DiskHealth;
  #salvage: Salvage | undefined;

  constructor(opened: Opened, log: OutboxLog) {
    this.#log = log;
    this.#health = opened.health;
    if (opened.salvage) this.#moved(opened.salvage);
    if (opened.machine_changed) {
      log.warn({ epoch: opened.epoch }, texts.file_copied);
    }
    if (opened.health.state !== 'ok') log.error({ reason: opened.health.detail }, texts.disk_failed);
  }

  get health(): DiskHealth {
    return this.#health;
  }

  /** What happened to the file that was there, at the start or since. */
  get salvage(): Salvage | undefined {
    return this.#salvage;
  }

  /** Messages are sent from memory. */
  get isFailing(): boolean {
    return this.#health.state === 'failing';
  }

  /** While the disk refuses commits, only a commit shows that it takes anything. */
  answered({ health, salvage }: Done, to: 'commit' | 'look'): void {
    if (salvage) this.#moved(salvage);
    if (to === 'look' && this.isFailing) return;
    const { state, detail } = health;
    if (state !== this.#health.state) {
      if (state === 'ok') this.#log.info({}, texts.disk_recovered);
      else this.#log.warn({ reason: detail }, texts.disk_full);
    }
    this.#health = health;
  }

  /** A request was refused, or is not answered. */
  refused(error: unknown): void {
    const detail = messageOf(error);
    if (!this.isFailing) this.#log.error({ reason: detail }, texts.disk_failed);
    this.#health = failing(detail, error instanceof StorageUnavailable ? error.fault : undefined);
  }

  #moved(salvage: Salvage): void {
    this.#salvage = salvage;
    this.#log.error({ ...salvage }, salvage_sentences[salvage.kind]);
  }
}

const file_look_every_ms = 1_000;
const age_look_every_ms = 10_000;

/** One look at a time: a thread that hangs must not find a queue of them. Returns what looks now. */
function keepLooking(
  every_ms: number,
  signal: AbortSignal,
  failed: (error: unknown) => void,
  look: () => Promise<void>,
): () => void {
  let isLooking = false;
  const lookOnce = async (): Promise<void> => {
    if (isLooking) return;
    isLooking = true;
    await look().catch(failed);
    isLooking = false;
  };
  const lookNow = (): void => void lookOnce();
  every(every_ms, signal, lookNow);
  return lookNow;
}

interface LookOptions {
  readonly client: Pick<StoreClient, 'look' | 'inspect'>;
  readonly disk: DiskState;
  readonly seen: (done: Done) => void;
  readonly failed: (error: unknown) => void;
}

/**
 * Looks once a second whether the buffer file is still where it was opened: while nothing is written, no commit notices that it was
 * deleted or replaced. While the disk fails, commits are tried again and again: only they show that it takes anything.
 */
export function lookAtFile({ client, disk, seen, failed }: LookOptions, signal: AbortSignal): void {
  keepLooking(file_look_every_ms, signal, failed, async () => {
    // An answer counts even if the disk has refused a commit meanwhile: it tells once what left the file.
    if (!disk.isFailing) seen(await client.look());
  });
}

/** The age of the oldest row on disk: requested periodically, since it has to be read. */
export class Oldest {
  /** When it was observed, as known some seconds ago; null when there is none. */
  ms: number | null = null;

  constructor({ client, failed }: Pick<LookOptions, 'client' | 'failed'>, signal: AbortSignal) {
    const look = keepLooking(age_look_every_ms, signal, failed, async () => {
      const { lanes: found } = await client.inspect();
      const times = Object.values(found).flatMap(({ oldest_ms }) => oldest_ms ?? []);
      this.ms = times.length > 0 ? Math.min(...times) : null;
    });
    look();
  }
}
