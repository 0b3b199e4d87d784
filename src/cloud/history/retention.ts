/** How long the history keeps what. */
import { z } from 'zod';
import type { HistoryClass } from './message.ts';
import { day_ms } from '../../platform/time.ts';

export interface Retention {
  /** Days that the messages of each class are kept, from the day of observation. */
  readonly days: Readonly<Record<HistoryClass, number>>;
  /** Days that the figures for ten minutes are kept. */
  readonly figures_days: number;
  /** Bytes of all segments of one kit; beyond it the oldest feeds go, then positions, then the rest. Left out: no limit. */
  readonly kit_bytes_max?: number | undefined;
}

const days = z.int().positive();
/** As a store keeps it. */
export const storedRetention = z.object({
  days: z.object({ event: days, position: days, feed: days, kit: days }),
  figures_days: days,
  kit_bytes_max: z.number().positive().optional(),
});

/** `api`: a client has set it. */
export interface RetentionInEffect {
  readonly retention: Retention;
  readonly source: 'configuration' | 'api';
}

export interface HistoryRetention {
  readonly read: () => Promise<RetentionInEffect>;
  /** Sets it for all kits and replicas, and returns what is in effect then. */
  readonly set: (retention: Retention) => Promise<RetentionInEffect>;
}

/** A message from the future, or older than what is kept, is stored with the day of its arrival. */
const future_ms = day_ms;
export const past_ms = 400 * day_ms;

/** Whether the time of a message is not that of its observation, as far as its arrival shows. */
export function isMisdated(
  { time_ms, unsynced }: { readonly time_ms: number; readonly unsynced: boolean },
  landed_ms: number,
): boolean {
  return unsynced || time_ms > landed_ms + future_ms || time_ms < landed_ms - past_ms;
}

/** What a gateway keeps: everything for the same time, within a size. */
export function gatewayRetention({
  days,
  max_mb,
}: {
  readonly days: number;
  readonly max_mb: number;
}): Retention {
  const all = { event: days, position: days, feed: days, kit: days };
  return { days: all, figures_days: days, kit_bytes_max: max_mb * 1_000_000 };
}

interface SettingStore {
  readonly historyRetention: () => Promise<Retention | undefined>;
  readonly setHistoryRetention: (retention: Retention) => Promise<void>;
}

/** What a client has set, or else the configuration. Read each time, since replicas share it. */
export function retentionSetting(store: SettingStore, configured: Retention): HistoryRetention {
  const read = async (): Promise<RetentionInEffect> => {
    const set = await store.historyRetention();
    if (!set) return { retention: configured, source: 'configuration' };
    // The size that is configured is what the disk has room for: a client may only lower it.
    const sizes = [set, configured].flatMap(({ kit_bytes_max: bytes }) => bytes ?? []);
    const kit_bytes_max = sizes.length === 0 ? undefined : Math.min(...sizes);
    return { retention: { ...set, kit_bytes_max }, source: 'api' };
  };
  return {
    read,
    async set(retention) {
      await store.setHistoryRetention(retention);
      return read();
    },
  };
}
