/** What one asset delivers, as its driver reports it: shown at once, but a failure of what had worked only once it lasts. */
import { type AssetHealth, health_items, type HealthItem } from '../../../contract/assets.ts';
import { cut, sentence_chars_max } from '../../../contract/limits.ts';
import type { Health } from '../../../toolkit/driver/health.ts';
import type { Clock } from '../../../platform/clock.ts';
import { cleanText } from '../../../platform/foreign-text.ts';
import { sleep } from '../../../platform/time.ts';

type ItemHealth = NonNullable<AssetHealth[HealthItem]>;

/** What is shown of each item, with the time of the next try however near that is. */
export type ShownHealth = Readonly<Partial<Record<HealthItem, ItemHealth>>>;

/** Most cameras that end a subscription take another one sooner. */
export const fails_after_ms = 15_000;
/** The time of a nearer try is not published: that would be a message for each. */
export const far_retry_ms = 60_000;

interface Reported extends ItemHealth {
  readonly isNear: boolean;
}

interface HealthParts {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** A failure has lasted. */
  readonly onLasting: () => void;
}

export class HealthOfAsset {
  readonly #parts: HealthParts;
  readonly #shown = new Map<HealthItem, Reported>();
  /** Failures of what had worked that have not lasted yet. */
  readonly #held = new Map<HealthItem, { latest: Reported }>();

  constructor(parts: HealthParts) {
    this.#parts = parts;
  }

  has(item: HealthItem): boolean {
    return this.#shown.has(item);
  }

  /** Returns whether something else is shown now. */
  set(item: HealthItem, health: Health): boolean {
    const held = this.#held.get(item);
    if (health.state !== 'fails' || this.#shown.get(item)?.state !== 'works') {
      this.#held.delete(item);
      return this.#show(item, this.#reported(health));
    }
    if (held) held.latest = this.#reported(health);
    else void this.#hold(item, { latest: this.#reported(health) });
    return false;
  }

  /** Nothing is known of it any more. */
  clear(): void {
    this.#shown.clear();
    this.#held.clear();
  }

  view(): ShownHealth {
    return this.#each(({ next_try_at }) => next_try_at);
  }

  /** Undefined: nothing was reported. */
  announced(): AssetHealth | undefined {
    if (this.#shown.size === 0) return undefined;
    return this.#each(({ next_try_at, isNear }) => (isNear ? null : next_try_at));
  }

  async #hold(item: HealthItem, held: { latest: Reported }): Promise<void> {
    this.#held.set(item, held);
    await sleep(fails_after_ms, this.#parts.signal);
    if (this.#held.get(item) !== held) return;
    this.#held.delete(item);
    this.#show(item, held.latest);
    this.#parts.onLasting();
  }

  #show(item: HealthItem, next: Reported): boolean {
    const shown = this.#shown.get(item);
    this.#shown.set(item, next);
    return shown?.state !== next.state || shown.reason !== next.reason || !next.isNear;
  }

  #reported(health: Health): Reported {
    const { state } = health;
    const reason = 'reason' in health ? health.reason : undefined;
    const retry_ms = state === 'fails' ? health.retry_ms : undefined;
    const next_ms = retry_ms === undefined ? undefined : this.#parts.clock.stamp().time_ms + retry_ms;
    return {
      state,
      reason: reason === undefined ? null : cut(cleanText(reason), sentence_chars_max),
      next_try_at: next_ms === undefined ? null : new Date(next_ms).toISOString(),
      isNear: retry_ms === undefined || retry_ms < far_retry_ms,
    };
  }

  #each(next_try_at: (item: Reported) => string | null): ShownHealth {
    const items = Array.from(this.#shown, ([item, reported]) => {
      const { state, reason } = reported;
      return [item, { state, reason, next_try_at: next_try_at(reported) }] as const;
    });
    return Object.fromEntries(items);
  }
}

/** The items that fail. */
export function failing(health: ShownHealth): readonly (readonly [item: HealthItem, health: ItemHealth])[] {
  return health_items.flatMap((item) => {
    const found = health[item];
    return found?.state === 'fails' ? [[item, found] as const] : [];
  });
}
