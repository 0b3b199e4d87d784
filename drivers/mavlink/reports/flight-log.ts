/** Logs changes of flight mode and arming, made by the kit, a pilot or the vehicle itself. */
import type { DriverLog } from '../../../src/driver/driver.ts';
import { texts } from '../vehicles/texts.ts';

export interface FlightState {
  readonly armed: boolean;
  /** Null: the vehicle reports none. */
  readonly mode: string | null;
}

export class FlightLog {
  readonly #log: Pick<DriverLog, 'info'>;
  #known: FlightState | undefined;

  constructor(log: Pick<DriverLog, 'info'>) {
    this.#log = log;
  }

  /** Notes a heartbeat; the first one is no change. */
  note(state: FlightState, about: { readonly asset_key: string; readonly name: string }): void {
    const known = this.#known;
    this.#known = state;
    if (!known) return;
    const { armed, mode } = state;
    if (armed !== known.armed)
      this.#log.info({ ...about, flight_mode: mode }, armed ? texts.armed : texts.disarmed);
    if (mode !== known.mode)
      this.#log.info({ ...about, flight_mode: mode, before: known.mode, armed }, texts.mode_changed);
  }
}
