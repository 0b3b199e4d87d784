/** Tracks whether a dish refuses its position: asks rarely then, and logs the refusal and its end once. */
import type { DriverLog } from '../../src/driver/driver.ts';
import type { DishPosition } from './dish.ts';
import { texts } from './texts.ts';

/** `no fix`: allowed, without a current fix. */
export type Permission = 'off' | 'refused' | 'no fix' | 'fresh';

/** A person must change it in an app; asking every few seconds only fills the dish's log. */
export const refused_pause_ms = 10 * 60_000;

export class Permit {
  #refused_ms: number | undefined;

  /** `now_ms` is monotonic. */
  mayAsk(now_ms: number): boolean {
    return this.#refused_ms === undefined || now_ms - this.#refused_ms >= refused_pause_ms;
  }

  received(
    { refusal }: DishPosition,
    { now_ms, log }: { readonly now_ms: number; readonly log: DriverLog },
  ): Extract<Permission, 'refused' | 'no fix'> {
    const wasRefused = this.#refused_ms !== undefined;
    this.#refused_ms = refusal ? now_ms : undefined;
    if (!refusal) {
      if (wasRefused) log.info({}, texts.position_available);
      return 'no fix';
    }
    if (!wasRefused) {
      const remedy = refusal.denied ? texts.allow_position : texts.see_reason;
      log.warn({ reason: refusal.reason, remedy }, texts.position_refused);
    }
    return 'refused';
  }
}
