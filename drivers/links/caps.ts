/** Publishes the data caps of the links on the gateway: each now and then, and an alarm when one changes its state. */
import type { DataCap } from '../../src/contract/feeds.ts';
import type { noFeeds } from '../../src/contract/feeds.ts';
import type { DriverHost } from '../../src/driver/driver.ts';
import { texts } from './texts.ts';
import { renewedOn } from './usage/cap.ts';
import type { Memory } from './usage/memory.ts';

/** Between two messages without a change of state. */
const caps_floor_ms = 600_000;

type CapsHost = Pick<DriverHost<typeof noFeeds>, 'publishGateway' | 'log'>;

export class Caps {
  readonly #host: CapsHost;
  readonly #memory: Pick<Memory, 'capState' | 'noteCap'>;
  readonly #seen = new Set<string>();
  #published_ms = Number.NEGATIVE_INFINITY;

  /** `memory` keeps the states, so that a restart repeats no alarm. */
  constructor(host: CapsHost, memory: Pick<Memory, 'capState' | 'noteCap'>) {
    this.#host = host;
    this.#memory = memory;
  }

  report(caps: readonly DataCap[], mono_ms: number): void {
    if (caps.length === 0) return;
    const timestamp = new Date().toISOString();
    const changed = caps.filter(({ name, state }) => state !== this.#memory.capState(name));
    for (const cap of changed) {
      this.#log(cap);
      this.#host.publishGateway('data_cap', { ...cap, timestamp });
      this.#memory.noteCap(cap.name, cap.state);
    }
    const isNew = caps.some(({ name }) => !this.#seen.has(name));
    for (const { name } of caps) this.#seen.add(name);
    if (!isNew && changed.length === 0 && mono_ms - this.#published_ms < caps_floor_ms) return;
    this.#published_ms = mono_ms;
    this.#host.publishGateway('data_caps', { links: [...caps], timestamp });
  }

  #log(cap: DataCap): void {
    const { name, state, used_gb, cap_gb, forecast_gb } = cap;
    const facts = { link: name, used_gb, cap_gb, forecast_gb, renewed_on: renewedOn(cap) };
    if (state === 'ok') this.#host.log.info(facts, texts.cap_ok);
    else this.#host.log.warn(facts, texts.cap_states[state]);
  }
}

/** The sentence by which the kit is degraded; undefined: the cap is kept. */
export function capWeakness(cap: DataCap | null): string | undefined {
  if (cap === null || cap.state === 'ok') return undefined;
  const { name, used_gb, cap_gb, forecast_gb, state } = cap;
  const renewed = renewedOn(cap);
  if (state === 'forecast')
    return texts.cap_forecast(name, { forecast_gb: forecast_gb ?? 0, cap_gb, renewed });
  return texts.cap_used(name, { used_gb, cap_gb, renewed });
}
