/**
 * The clock of signatures: 10 microsecond ticks since 2015 that never repeat and never go back, whatever the time of
 * day does. Receivers take a repeated tick for a replay, and a clock in the past for an old recording.
 */
import { readFile } from 'node:fs/promises';
import type { DriverLog } from '../../src/driver/driver.ts';
import { replaceFile } from '../../src/platform/replace-file.ts';
import { every } from '../../src/platform/time.ts';

export const ticks_per_s = 100_000;
const epoch_ms = Date.UTC(2015, 0, 1);
const ticks_max = 2 ** 48 - 1;

/** The file is ahead of the clock by up to this much, so that a power cut never brings a used tick back. */
const reserve_ticks = 60 * ticks_per_s;
const look_every_ms = 10_000;

export interface SigningClock {
  /** A tick that no frame has had yet. */
  next(): number;
  /** Where the clock stands, without using a tick. */
  now(): number;
  /** A genuine frame carried this tick: ours must be later, or its sender does not hear us. */
  learn(ticks: number): void;
}

interface ClockNeeds {
  readonly signal: AbortSignal;
  readonly log: DriverLog;
}

/** The clock goes on where the file says that it stood. Without a readable file it begins at the time of day. */
export async function openSigningClock(file: string, { signal, log }: ClockNeeds): Promise<SigningClock> {
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
        log.warn(
          { err, file },
          'the signing clock cannot be kept: after a restart with a wrong time of day vehicles may ignore this kit',
        );
      }
      isFailing = true;
    } finally {
      isWriting = false;
    }
  };
  await reserve();
  every(look_every_ms, signal, () => void reserve());
  return clock;
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
  const text = await readFile(file, 'utf8').catch(() => undefined);
  if (text === undefined) return 0;
  const ticks = Number(text);
  if (Number.isSafeInteger(ticks) && ticks >= 0 && ticks <= ticks_max) return ticks;
  log.warn({ file }, 'the file of the signing clock is damaged; the clock begins at the time of day');
  return 0;
}
