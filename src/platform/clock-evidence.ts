/**
 * What shows that the time of day was set from the network: the kernel's own account of its clock (adjtimex(2)), which
 * chrony, ntpd and systemd-timesyncd keep and a container shares with its host, and the file that systemd-timesyncd makes.
 */
import { statSync } from 'node:fs';
import { endianness } from 'node:os';
import { libc } from './linux/libc.ts';

export interface ClockEvidence {
  isSet(): boolean;
  /** The clock was stepped: what was seen before shows nothing any more. */
  doubt(): void;
}

/** Somebody else vouches for the clock: the technician, or a test. */
export const vouched: ClockEvidence = { isSet: () => true, doubt: () => undefined };

/** The largest error in microseconds that the clock may have, as reported by the kernel; null without a report. */
export type ReadMaxError = () => number | null;

/** No service disciplines the clock: NTP_PHASE_LIMIT of the kernel. chrony leaves STA_UNSYNC set without `rtcsync`, but not this. */
const unknown_error_us = 16_000_000;
export const timesync_file = '/run/systemd/timesync/synchronized';

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
      return Number(
        endianness() === 'LE' ? timex.readBigInt64LE(max_error_at) : timex.readBigInt64BE(max_error_at),
      );
    };
  } catch {
    return () => null;
  }
}

function mtimeOf(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs;
}
