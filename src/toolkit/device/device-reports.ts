/** Reports of the devices of one driver for status, doctor and the assets: what was tried, the answer, the next attempt. */
import type { DeviceReport } from '../driver/driver.ts';
import type { SessionState } from './device-session.ts';

export interface ReportedDevice {
  /** As the configuration calls it. */
  readonly name: string;
  /** Host and port. */
  readonly tried: string;
  /** `asset_key` of the device that belongs to the entry, once known. */
  readonly asset_key: () => string | undefined;
  /** See `DeviceReport`. */
  readonly weakness?: string | undefined;
}

export class DeviceReports {
  readonly #reports = new Map<string, DeviceReport>();
  readonly #report: () => void;

  constructor(report: () => void) {
    this.#report = report;
  }

  get all(): readonly DeviceReport[] {
    return [...this.#reports.values()];
  }

  take({ name, tried, asset_key, weakness }: ReportedDevice, state: SessionState): void {
    if (state.state === 'stopped') return;
    const now_ms = Date.now();
    const failure =
      'reason' in state
        ? { reason: state.reason, tried_at: iso(now_ms), next_try_at: iso(now_ms + state.retry_ms) }
        : { reason: null, tried_at: null, next_try_at: null };
    const about = { name, tried, asset_key: asset_key() ?? null, state: shown[state.state] };
    this.#reports.set(name, { ...about, ...failure, ...(weakness === undefined ? {} : { weakness }) });
    this.#report();
  }

  /** The device is not configured any more, or in another way. */
  forget(name: string): void {
    if (this.#reports.delete(name)) this.#report();
  }
}

const shown = { starting: 'starting', up: 'online', down: 'offline', rejected: 'rejected' } as const;

function iso(time_ms: number): string {
  return new Date(time_ms).toISOString();
}
