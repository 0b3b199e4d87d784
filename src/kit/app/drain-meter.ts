/** How fast the backlog drains, from what is on disk each second. Pure but for the clock that is passed in. */
import type { Outbox } from '../outbox/live/outbox.ts';
import { refusedReasons } from './degraded.ts';
import { texts } from './texts.ts';

/** Below this many messages a backlog is gone before a person has read of it. */
export const backlog_min = 500;
const window_ms = 30_000;
export const sample_every_ms = 1_000;
const log_every_ms = 60_000;

export interface DrainReport {
  /** The most messages that waited since the drain began. */
  readonly from: number;
  readonly left: number;
  /** Over the last half minute. */
  readonly per_s: number;
  /** Null while nothing leaves. */
  readonly left_s: number | null;
  /** Why nothing leaves, where that is known. */
  readonly waits: string | null;
}

export interface DrainMeterOptions {
  readonly now_ms: () => number;
  /** Messages on disk. */
  readonly waiting: () => number;
  readonly isConnected: () => boolean;
  /** Why nothing may leave. */
  readonly waitReason: () => string | undefined;
  readonly log: { info(facts: object, sentence: string): void; warn(facts: object, sentence: string): void };
}

interface Sample {
  readonly at_ms: number;
  readonly left: number;
}

export class DrainMeter {
  readonly #options: DrainMeterOptions;
  /** At most `window_ms` of them, oldest first; empty while no backlog drains. */
  #samples: readonly Sample[] = [];
  #from = 0;
  #began_ms = 0;
  #logged_ms = 0;
  /** The reason that was logged last; null while messages leave. */
  #waits: string | null = null;

  constructor(options: DrainMeterOptions) {
    this.#options = options;
  }

  /** To be called every `sample_every_ms`. */
  sample(): void {
    const { now_ms, waiting, isConnected, log } = this.#options;
    const [at_ms, left] = [now_ms(), waiting()];
    if (!isConnected()) {
      this.#samples = [];
      return;
    }
    const isDraining = this.#samples.length > 0;
    if (left < backlog_min) {
      this.#samples = [];
      if (isDraining)
        log.info({ messages: this.#from, took_s: (at_ms - this.#began_ms) / 1_000 }, texts.backlog_drained);
      this.#waits = null;
      return;
    }
    if (!isDraining) {
      this.#from = left;
      this.#began_ms = at_ms;
      this.#logged_ms = at_ms;
    }
    this.#from = Math.max(this.#from, left);
    this.#samples = [...this.#samples.filter((sample) => at_ms - sample.at_ms <= window_ms), { at_ms, left }];
    if (at_ms - this.#logged_ms < log_every_ms) return;
    this.#logged_ms = at_ms;
    this.#logProgress(this.report());
  }

  /** Progress each minute; what it waits for once, and when that changes. */
  #logProgress(report: DrainReport | null): void {
    if (!report) return;
    const { waits, ...figures } = report;
    const { log } = this.#options;
    if (waits === null)
      log.info({ ...figures }, figures.per_s > 0 ? texts.backlog_draining : texts.backlog_not_shrinking);
    else if (waits !== this.#waits) log.warn({ left: report.left, reason: waits }, texts.backlog_waits);
    this.#waits = waits;
  }

  /** Null while no backlog drains. */
  report(): DrainReport | null {
    const [first, last] = [this.#samples[0], this.#samples.at(-1)];
    if (!first || !last) return null;
    const gone = first.left - last.left;
    const per_s = gone > 0 ? gone / ((last.at_ms - first.at_ms) / 1_000) : 0;
    const left_s = per_s > 0 ? last.left / per_s : null;
    const waits = per_s > 0 ? null : (this.#options.waitReason() ?? null);
    return { from: this.#from, left: last.left, per_s, left_s, waits };
  }
}

/** A cloud that acknowledges does so within seconds. */
const cloud_silent_ms = 30_000;

type Pauses = Pick<Outbox['dispatch'], 'withoutSubscribers' | 'refusedKinds' | 'delivery'>;

/**
 * Why messages of the backlog may not leave; undefined: not known. `problems`: between kit and broker. `silent_ms`: since the
 * cloud acknowledged anything.
 */
export function waitReason(
  dispatch: Pauses,
  problems: readonly string[],
  silent_ms: number,
): string | undefined {
  const unheard = dispatch.withoutSubscribers();
  const reasons = [
    ...(unheard.length > 0 ? [texts.no_subscriber(unheard.join(', '))] : []),
    ...refusedReasons(dispatch.refusedKinds()),
    ...problems,
  ];
  if (reasons.length > 0) return reasons.join('. ');
  const isSilent = dispatch.delivery.delivered_to === 'cloud' && silent_ms >= cloud_silent_ms;
  return isSilent ? texts.waits_for_cloud : undefined;
}
