/**
 * What stands around the data of every upstream message: when it was observed, and the number that makes it unique.
 * `(kit, epoch, seq)` is the dedup key. A latest value is replaced only by one with a greater `(epoch, seq)`: the time of day never
 * decides.
 */
import { z } from 'zod';
import { time_chars_max } from './limits.ts';

/**
 * `unsynced`: the clock could not be trusted when it was observed. `corrected`: the same, but the time was computed
 * afterwards from the time since boot. Absent: the clock was right.
 */
export const timeQuality = z.enum(['unsynced', 'corrected']);
export type TimeQuality = z.output<typeof timeQuality>;

export interface Position {
  /** Rises at every start of the connector. */
  readonly epoch: number;
  /** Rises by one with every message of an epoch; each epoch begins somewhere else. */
  readonly seq: number;
}

export interface Observed extends Position {
  /** UTC, milliseconds since 1970. */
  readonly time_ms: number;
  readonly time_quality?: TimeQuality | undefined;
}

/** The envelope schema around a data schema. */
export function envelopeOf<T extends z.ZodType>(data: T) {
  return z.strictObject({
    time: z.iso.datetime().max(time_chars_max),
    time_quality: timeQuality.optional(),
    epoch: z.int().positive(),
    seq: z.int().nonnegative(),
    data,
  });
}

/** Writes an envelope around data that is JSON text already, without parsing it again. */
export function writeEnvelope(observed: Observed, data: string): string {
  const quality = observed.time_quality ? `,"time_quality":"${observed.time_quality}"` : '';
  const time = new Date(observed.time_ms).toISOString();
  return `{"time":"${time}"${quality},"epoch":${observed.epoch},"seq":${observed.seq},"data":${data}}`;
}
