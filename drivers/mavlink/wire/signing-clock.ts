/**
 * The signing clock: 10 microsecond ticks since 2015 that never repeat and never go back, whatever the time of
 * day does. Receivers take a repeated tick for a replay, and a clock in the past for an old recording.
 */
import { readStateText } from '../../../src/toolkit/device/state-file.ts';
import type { DriverLog } from '../../../src/toolkit/driver/driver.ts';
import { replaceFile } from '../../../src/platform/replace-file.ts';
import { every } from '../../../src/platform/time.ts';
import { texts } from './texts.ts';

export const ticks_per_s = 100_000;
const epoch_ms = Date.UTC(2015, 0, 1);
const ticks_max = 2 ** 48 - 1;
const day_ticks = 86_400 * ticks_per_s;
/**
 * A clock that is further ahead of the time of day is not followed: every vehicle would follow it through this kit, and at the last
 * tick no frame can be signed any more. A kit without a battery-backed clock may be years behind.
 */
const ahead_max_ticks = 3_650 * day_ticks;
/** No time of day before this program was written is right. */
const earliest_ticks = ticksOf(Date.UTC(2026, 0, 1));

/** The file is ahead of the clock by up to this much, so that no tick repeats after a power cut. */
const reserve_ticks = 60 * ticks_per_s;
const store_every_ms = 10_000;
/** Between writes because of senders that are ahead. */
const leap_every_ms = 1_000;

export interface SigningClock {
  /** Returns a new tick that no frame has used. */
  next(): number;
  /** Returns the current tick without using it. */
  now(): number;
  /** No frame that was accepted before this start has a later tick. */
  readonly started_at: number;
  /** Whether a clock is so far ahead that it is not followed. */
  isTooFarAhead(ticks: number): boolean;
  /** Advances to the tick of a genuine frame: ours must be later, or its sender ignores us. */
  learn(ticks: number, sysid: number): void;
}

export interface StoredSigningClock extends SigningClock {
  /** Days by which it is ahead of the time of day. */
  ahead_days(): number;
  /** Stores it as it is when no frame will be signed or verified any more, so that the next start need not skip time. */
  close(): Promise<void>;
}

interface ClockNeeds {
  readonly signal: AbortSignal;
  readonly log: DriverLog;
}

/** Opens the clock at the tick in the file. Without a readable file it starts at the time of day. */
export async function openSigningClock(
  file: string,
  { signal, log }: ClockNeeds,
): Promise<StoredSigningClock> {
  const clock = new Clock(await readTicks(file, log));
  let reserved = 0;
  let leapt_ms = Number.NEGATIVE_INFINITY;
  let isFailing = false;
  let hasWarned = false;
  const store = async (upTo: number): Promise<void> => {
    try {
      await replaceFile(file, `${upTo}\n`);
      reserved = upTo;
      isFailing = false;
    } catch (err) {
      if (!isFailing) {
        log.warn({ err, file }, texts.clock_write_failed);
      }
      isFailing = true;
    }
  };
  let isStoring = false;
  let stored = Promise.resolve();
  const reserve = (): void => {
    if (isStoring || clock.now() < reserved - reserve_ticks / 2) return;
    isStoring = true;
    stored = store(clock.now() + reserve_ticks).finally(() => {
      isStoring = false;
    });
  };
  const warnIfAhead = (facts: { readonly system_id?: number }): void => {
    const ahead_days = clock.ahead_days();
    if (hasWarned || ahead_days < 1) return;
    hasWarned = true;
    log.warn({ ...facts, ahead_days }, texts.clock_ahead);
  };
  // Who was ahead in an earlier run is not known.
  warnIfAhead({});
  reserve();
  await stored;
  every(store_every_ms, signal, reserve);
  return {
    next: () => clock.next(),
    now: () => clock.now(),
    started_at: clock.started_at,
    isTooFarAhead: (ticks) => clock.isTooFarAhead(ticks),
    learn(ticks, sysid) {
      clock.learn(ticks);
      // What it has accepted must be stored before a power cut, or it would be accepted again.
      if (ticks > reserved && performance.now() - leapt_ms >= leap_every_ms && !signal.aborted) {
        leapt_ms = performance.now();
        reserve();
      }
      warnIfAhead({ system_id: sysid });
    },
    ahead_days: () => clock.ahead_days(),
    async close() {
      await stored;
      await store(clock.now());
    },
  };
}

class Clock {
  readonly started_at: number;
  #last: number;

  constructor(last: number) {
    this.started_at = last;
    this.#last = last;
  }

  next(): number {
    this.#last = Math.min(Math.max(this.#timeOfDay(), this.#last + 1), ticks_max);
    return this.#last;
  }

  now(): number {
    return Math.max(this.#timeOfDay(), this.#last);
  }

  learn(ticks: number): void {
    this.#last = Math.max(this.#last, ticks);
  }

  isTooFarAhead(ticks: number): boolean {
    return ticks > Math.max(this.#timeOfDay(), earliest_ticks) + ahead_max_ticks;
  }

  ahead_days(): number {
    return Math.max(0, Math.floor((this.#last - this.#timeOfDay()) / day_ticks));
  }

  #timeOfDay(): number {
    return Math.max(0, ticksOf(Date.now()));
  }
}

function ticksOf(time_ms: number): number {
  return Math.floor((time_ms - epoch_ms) * (ticks_per_s / 1_000));
}

async function readTicks(file: string, log: DriverLog): Promise<number> {
  const text = await readStateText(file);
  if (text === undefined) return 0;
  const ticks = Number(text);
  if (Number.isSafeInteger(ticks) && ticks >= 0 && ticks <= ticks_max) return ticks;
  log.warn({ file }, texts.clock_damaged);
  return 0;
}
