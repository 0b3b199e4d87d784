/** Remembers that a dish refuses to tell its position: asks seldom then, and says so once each way. */
import type { DriverLog } from '../../src/driver/driver.ts';
import type { Whereabouts } from './dish.ts';

/** `no fix`: allowed, but nothing fresh is known. */
export type Permission = 'off' | 'refused' | 'no fix' | 'fresh';

/** Somebody must open an app to change it; asking each few seconds only fills the dish's log. */
export const refused_pause_ms = 10 * 60_000;

export class Permit {
  #refused_ms: number | undefined;

  /** `now_ms` is monotonic. */
  mayAsk(now_ms: number): boolean {
    return this.#refused_ms === undefined || now_ms - this.#refused_ms >= refused_pause_ms;
  }

  heard(
    { refusal }: Whereabouts,
    { now_ms, log }: { readonly now_ms: number; readonly log: DriverLog },
  ): Extract<Permission, 'refused' | 'no fix'> {
    const wasRefused = this.#refused_ms !== undefined;
    this.#refused_ms = refusal ? now_ms : undefined;
    if (!refusal) {
      if (wasRefused) log.info({}, 'the dish tells its position now');
      return 'no fix';
    }
    if (!wasRefused) {
      const remedy = refusal.denied
        ? 'allow it in the Starlink app: Settings, Advanced, Debug data, Starlink location, "allow access on local network"'
        : 'see the reason';
      log.warn(
        { reason: refusal.reason, remedy },
        'the dish does not tell its position; asked again each 10 minutes',
      );
    }
    return 'refused';
  }
}
