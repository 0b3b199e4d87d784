/** Publishes the data caps of the links on the gateway: each now and then, and an alarm when one changes its state. */
import type { DataCap } from '../../src/contract/feeds.ts';
import type { noFeeds } from '../../src/contract/feeds.ts';
import type { DriverHost } from '../../src/driver/driver.ts';
import { texts } from './texts.ts';
import { renewedOn } from './usage/cap.ts';

/** Between two messages without a change of state. */
const caps_floor_ms = 600_000;

export class Caps {
  readonly #host: Pick<DriverHost<typeof noFeeds>, 'publishGateway' | 'log'>;
  readonly #states = new Map<string, DataCap['state']>();
  #published_ms = Number.NEGATIVE_INFINITY;

  constructor(host: Pick<DriverHost<typeof noFeeds>, 'publishGateway' | 'log'>) {
    this.#host = host;
  }

  report(caps: readonly DataCap[], mono_ms: number): void {
    if (caps.length === 0) return;
    const timestamp = new Date().toISOString();
    const changed = caps.filter(({ name, state }) => state !== (this.#states.get(name) ?? 'ok'));
    for (const cap of changed) {
      this.#log(cap);
      this.#host.publishGateway('data_cap', { ...cap, timestamp });
    }
    const isNew = caps.some(({ name }) => !this.#states.has(name));
    for (const { name, state } of caps) this.#states.set(name, state);
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
