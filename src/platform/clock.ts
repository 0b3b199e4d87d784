/** The time of day and the time since boot, and whether the time of day can be trusted yet. */
import { statSync } from 'node:fs';
import { readTextUpToSync, small_bytes_max } from './bounded-file.ts';
import { libc } from './linux/libc.ts';
import { earliest_plausible_ms } from './time.ts';

export interface Stamp {
  /** UTC, milliseconds since 1970, by the clock. */
  readonly time_ms: number;
  /** Milliseconds since boot; rises evenly while the time of day jumps. */
  readonly mono_ms: number;
  readonly synced: boolean;
}

export interface Clock {
  stamp(): Stamp;
  /** Aborts when the time of day is set anew, by a minute or more: what failed by it may succeed now. */
  readonly untilSet?: () => AbortSignal;
  /** Changes when the machine boots: `mono_ms` of different boots cannot be compared. */
  readonly boot_id: string;
}

/** The time of day jumped, against the monotonic clock. */
export interface ClockStep {
  /** Where the clock would be without the step. */
  readonly from_ms: number;
  readonly to_ms: number;
  /** Below 0: back. */
  readonly by_ms: number;
}

interface ClockOptions {
  readonly evidence: ClockEvidence;
  /** Called once for each step. */
  readonly onStep?: (step: ClockStep) => void;
  readonly wall?: () => number;
  readonly mono?: () => number;
}

/** A clock that is only slewed moves by less than a millisecond a second. */
const step_min_ms = 500;
const look_every_ms = 5_000;
/** Certificates are not judged otherwise by a smaller step. */
const set_min_ms = 60_000;

/** Counts as synced from the first evidence on, until a step puts that in doubt. */
export function systemClock(options: ClockOptions): Clock {
  const { evidence, onStep, wall = () => Date.now(), mono = () => performance.now() } = options;
  // Whole, as the file has it: with a fraction, the sums of whole times would not be exact.
  const boot_offset_ms = Math.round(readUptime_ms() - mono());
  const isSynced = watchEvidence(evidence);
  const read = () => ({ time_ms: wall(), mono_ms: boot_offset_ms + mono() });
  let offset_ms: number | undefined;
  let set = new AbortController();
  /** How far the time of day has jumped since the last reading. */
  const jump_ms = ({ time_ms, mono_ms }: ReturnType<typeof read>): number =>
    offset_ms === undefined ? 0 : time_ms - mono_ms - offset_ms;
  const stepped = (step: ClockStep): void => {
    onStep?.(step);
    if (Math.abs(step.by_ms) < set_min_ms) return;
    set.abort();
    set = new AbortController();
  };
  return {
    untilSet: () => set.signal,
    boot_id: readText('/proc/sys/kernel/random/boot_id') || 'unknown',
    stamp: () => {
      let now = read();
      // The process may have been stopped between the two clocks: only a second reading shows a step.
      if (Math.abs(jump_ms(now)) >= step_min_ms) now = read();
      const by_ms = jump_ms(now);
      offset_ms = now.time_ms - now.mono_ms;
      const isStep = Math.abs(by_ms) >= step_min_ms;
      if (isStep) evidence.doubt();
      const synced = isSynced(now.mono_ms, isStep) && now.time_ms >= earliest_plausible_ms;
      if (isStep) stepped({ from_ms: now.time_ms - by_ms, to_ms: now.time_ms, by_ms });
      return { time_ms: now.time_ms, mono_ms: Math.round(now.mono_ms), synced };
    },
  };
}

/** Looks at the evidence at most every `look_every_ms`, and no more once it was there. */
function watchEvidence(evidence: ClockEvidence): (mono_ms: number, isDoubtful: boolean) => boolean {
  let synced = false;
  let looked_ms = Number.NEGATIVE_INFINITY;
  return (mono_ms, isDoubtful) => {
    if (!isDoubtful && (synced || mono_ms - looked_ms < look_every_ms)) return synced;
    looked_ms = mono_ms;
    synced = evidence.isSet();
    return synced;
  };
}

function readUptime_ms(): number {
  return Number.parseFloat(readText('/proc/uptime') || '0') * 1000;
}

function readText(path: string): string {
  try {
    return readTextUpToSync(path, small_bytes_max).trim();
  } catch {
    return '';
  }
}

export interface ClockEvidence {
  isSet(): boolean;
  /** The clock was stepped: what was seen before shows nothing any more. */
  doubt(): void;
}

/** Somebody else vouches for the clock: the technician, or a test. */
export const vouched: ClockEvidence = { isSet: () => true, doubt: () => undefined };

/** The largest error in microseconds that the clock may have, as reported by the kernel; null without a report. */
type ReadMaxError = () => number | null;

/** No service disciplines the clock: NTP_PHASE_LIMIT of the kernel. chrony leaves STA_UNSYNC set without `rtcsync`, but not this. */
const unknown_error_us = 16_000_000;
const timesync_file = '/run/systemd/timesync/synchronized';

/** Never rejects: without the C library the file alone counts. */
export async function openClockEvidence(): Promise<ClockEvidence> {
  return clockEvidence(await maxErrorReader(), timesync_file);
}

export function clockEvidence(readMaxError_us: ReadMaxError, file: string): ClockEvidence {
  let doubted_mtime_ms: number | undefined;
  return {
    isSet() {
      const error_us = readMaxError_us();
      if (error_us !== null && error_us < unknown_error_us) return true;
      const mtime_ms = mtimeOf(file);
      return mtime_ms !== undefined && mtime_ms !== doubted_mtime_ms;
    },
    doubt() {
      doubted_mtime_ms = mtimeOf(file);
    },
  };
}

/** `struct timex` of 64-bit Linux, and where `maxerror` is in it. */
const timex_bytes = 208;
const max_error_at = 24;

async function maxErrorReader(): Promise<ReadMaxError> {
  try {
    const { adjtimex } = await libc();
    const timex = Buffer.alloc(timex_bytes);
    return () => {
      // `modes` 0: it is only read.
      timex.fill(0);
      if (adjtimex(timex) < 0) return null;
      return Number(timex.readBigInt64LE(max_error_at));
    };
  } catch {
    return () => null;
  }
}

function mtimeOf(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs;
}
