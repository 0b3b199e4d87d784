/** Saves power while the battery of the kit is low, as `low_battery` of the configuration specifies. */
import type { LowBatteryConfig } from '../config/low-battery.ts';
import type { KitTelemetry } from '../../contract/kit.ts';
import type { Streams } from '../hub/assets/assets.ts';
import type { FeedRates } from '../hub/rate.ts';
import type { Log } from '../../platform/log/log.ts';
import { notOffered } from '../../toolkit/driver/health.ts';
import { texts } from './texts.ts';

/** A charger that comes and goes, as the sun does, must not switch feeds and video all the time. */
export const charging_min_ms = 60_000;
/** Between two looks at the battery. */
export const battery_look_ms = 5_000;

type Battery = Pick<KitTelemetry, 'battery' | 'battery_charging'>;

interface LowBatteryParts {
  /** The present content of the file; undefined: nothing is saved. */
  readonly config: () => LowBatteryConfig | undefined;
  readonly battery: () => Battery;
  /** Monotonic; the clock of this process when left out. */
  readonly now?: () => number;
  /** Rates and allowed commands are others now. */
  readonly onChange: () => void;
  /** The stream of this asset is another now. */
  readonly onStream: (asset_key: string) => void;
  readonly log: Pick<Log, 'info' | 'warn'>;
}

export class LowBattery {
  readonly #parts: LowBatteryParts;
  /** Streams that the drivers want, by asset; the hub limits the number of assets. */
  readonly #wanted = new Map<string, string>();
  #streams: Streams | undefined;
  #isLow = false;
  /** Since when the battery is charging. */
  #charging_ms: number | undefined;
  #hidesVideo = false;

  constructor(parts: LowBatteryParts) {
    this.#parts = parts;
  }

  /** Looks at battery and configuration, and applies what changed. */
  look(): void {
    const before = this.#isLow;
    const config = this.#parts.config();
    const { battery = null, battery_charging = null } = this.#parts.battery();
    const charged_ms = this.#charged_ms(battery_charging === true);
    const isCharging = charged_ms >= (before ? charging_min_ms : 0);
    this.#isLow = config !== undefined && isLow({ battery, isCharging }, before, config);
    if (this.#isLow !== before) {
      const { log, onChange } = this.#parts;
      if (this.#isLow) log.warn({ battery_pct: battery }, texts.saving_power);
      else log.info({ battery_pct: battery }, texts.power_back);
      onChange();
    }
    this.#showVideo(this.#isLow && config?.camera_video === false);
  }

  /** For how long it has been charging; below 0: it is not. */
  #charged_ms(isCharging: boolean): number {
    const now_ms = this.#parts.now?.() ?? performance.now();
    this.#charging_ms = isCharging ? (this.#charging_ms ?? now_ms) : undefined;
    return this.#charging_ms === undefined ? -1 : now_ms - this.#charging_ms;
  }

  /** Limits of the feeds; undefined: none. */
  rates(): Partial<FeedRates> | undefined {
    return this.#active()?.rates_hz;
  }

  /** True, or the sentence an operator reads in `result.error`. */
  allows(command_name: string): true | string {
    const active = this.#active();
    const isSaved =
      (command_name === 'speedtest' && active?.speed_tests === false) ||
      (command_name === 'snapshot' && active?.camera_video === false);
    return isSaved ? texts.command_saved(command_name) : true;
  }

  /** Why the kit is degraded; null: it saves nothing. */
  reason(): string | null {
    const active = this.#active();
    if (!active) return null;
    const savings = [
      texts.rates_reduced,
      ...(active.speed_tests ? [] : [texts.no_speed_tests]),
      ...(active.camera_video ? [] : [texts.events_only]),
    ];
    return texts.battery_low(this.#parts.battery().battery ?? null, savings.join(', '));
  }

  /** Passes on what drivers want of the media server, and nothing while video is saved. */
  streams(inner: Streams): Streams {
    this.#streams = inner;
    return {
      want: (asset_key, rtsp_url) => {
        if (rtsp_url === null) this.#wanted.delete(asset_key);
        else this.#wanted.set(asset_key, rtsp_url);
        inner.want(asset_key, this.#hidesVideo ? null : rtsp_url);
      },
      urlOf: (asset_key) => (this.#hidesVideo ? null : inner.urlOf(asset_key)),
      healthOf: (asset_key) =>
        this.#hidesVideo ? notOffered(texts.command_saved('video')) : inner.healthOf(asset_key),
    };
  }

  #showVideo(isHidden: boolean): void {
    if (isHidden === this.#hidesVideo) return;
    this.#hidesVideo = isHidden;
    for (const [asset_key, rtsp_url] of this.#wanted) {
      this.#streams?.want(asset_key, isHidden ? null : rtsp_url);
      this.#parts.onStream(asset_key);
    }
  }

  #active(): LowBatteryConfig | undefined {
    return this.#isLow ? this.#parts.config() : undefined;
  }
}

/** An unknown charge keeps the state before: a driver that restarts must not change the rates. */
function isLow(
  { battery, isCharging }: { readonly battery: number | null; readonly isCharging: boolean },
  before: boolean,
  { below_pct, until_pct }: LowBatteryConfig,
): boolean {
  if (isCharging) return false;
  if (battery === null) return before;
  return battery < (before ? until_pct : below_pct);
}
