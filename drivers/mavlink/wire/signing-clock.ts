/**
 * The signing clock: 10 microsecond ticks since 2015 that never repeat and never go back, whatever the time of
 * day does. Receivers take a repeated tick for a replay, and a clock in the past for an old recording.
 */
import { readStateText } from '../../../src/device/state-file.ts';
import type { DriverLog } from '../../../src/driver/driver.ts';
import { replaceFile } from '../../../src/platform/replace-file.ts';
import { every } from '../../../src/platform/time.ts';
import { texts } from './texts.ts';

export const ticks_per_s = 100_000;
const epoch_ms = Date.UTC(2015, 0, 1);
const ticks_max = 2 ** 48 - 1;

/** The file is ahead of the clock by up to this much, so that no tick repeats after a power cut. */
const reserve_ticks = 60 * ticks_per_s;
const store_every_ms = 10_000;

export interface SigningClock {
  /** Returns a new tick that no frame has used. */
  next(): number;
  /** Returns the current tick without using it. */
  now(): number;
  /** Advances to the tick of a genuine frame: ours must be later, or its sender ignores us. */
  learn(ticks: number): void;
}

export interface StoredSigningClock extends SigningClock {
  /** Resolves when no write of the file is in progress; after the abort none begins. */
  saved(): Promise<void>;
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
  let isWriting = false;
  let isFailing = false;
  const reserve = async (): Promise<void> => {
    if (isWriting || clock.now() < reserved - reserve_ticks / 2) return;
    isWriting = true;
    const upTo = clock.now() + reserve_ticks;
    try {
      await replaceFile(file, `${upTo}\n`);
      reserved = upTo;
      isFailing = false;
    } catch (err) {
      if (!isFailing) {
        log.warn({ err, file }, texts.clock_write_failed);
      }
      isFailing = true;
    } finally {
      isWriting = false;
    }
  };
  await reserve();
  let saving = Promise.resolve();
  every(store_every_ms, signal, () => {
    if (!isWriting) saving = reserve();
  });
  return {
    next: () => clock.next(),
    now: () => clock.now(),
    learn: (ticks) => clock.learn(ticks),
    saved: async () => saving,
  };
}

class Clock implements SigningClock {
  #last: number;

  constructor(last: number) {
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

  #timeOfDay(): number {
    return Math.max(0, Math.floor((Date.now() - epoch_ms) * (ticks_per_s / 1_000)));
  }
}

async function readTicks(file: string, log: DriverLog): Promise<number> {
  const text = await readStateText(file);
  if (text === undefined) return 0;
  const ticks = Number(text);
  if (Number.isSafeInteger(ticks) && ticks >= 0 && ticks <= ticks_max) return ticks;
  log.warn({ file }, texts.clock_damaged);
  return 0;
}
