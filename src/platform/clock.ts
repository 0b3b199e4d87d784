/** The time of day and the time since boot, and whether the time of day can be trusted yet. */
import { existsSync, readFileSync } from 'node:fs';

export interface Stamp {
  /** UTC, milliseconds since 1970, as the clock says. */
  readonly time_ms: number;
  /** Milliseconds since boot; goes on evenly while the time of day jumps. */
  readonly mono_ms: number;
  readonly synced: boolean;
}

export interface Clock {
  stamp(): Stamp;
  /** Changes when the machine boots: `mono_ms` of different boots cannot be compared. */
  readonly boot_id: string;
}

/** Gateways without a battery-backed clock boot in the past: no time before this release can be right. */
const earliest_plausible_ms = Date.UTC(2026, 10, 1);
/** systemd-timesyncd creates the file when the clock was set from the network. */
const timesync_dir = '/run/systemd/timesync';

export function systemClock(): Clock {
  const bootOffset_ms = readUptime_ms() - performance.now();
  const isSynced = networkSyncWatcher();
  return {
    boot_id: readText('/proc/sys/kernel/random/boot_id') || 'unknown',
    stamp: () => {
      const time_ms = Date.now();
      const mono_ms = Math.round(bootOffset_ms + performance.now());
      return { time_ms, mono_ms, synced: time_ms >= earliest_plausible_ms && isSynced(mono_ms) };
    },
  };
}

/** Looks for the file at most every `look_every_ms`, and never again once the clock was set. */
function networkSyncWatcher(): (mono_ms: number) => boolean {
  let synced = false;
  let looked_ms = Number.NEGATIVE_INFINITY;
  return (mono_ms) => {
    if (synced || mono_ms - looked_ms < look_every_ms) return synced;
    looked_ms = mono_ms;
    synced = !existsSync(timesync_dir) || existsSync(`${timesync_dir}/synchronized`);
    return synced;
  };
}
const look_every_ms = 5_000;

function readUptime_ms(): number {
  return Number.parseFloat(readText('/proc/uptime') || '0') * 1000;
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return '';
  }
}
