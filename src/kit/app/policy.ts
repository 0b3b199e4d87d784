/** Local policy: which commands may run, and how much the cloud may change of what the file specifies. */
import type { DataCap } from '../../contract/feeds.ts';
import type { LinkType } from '../../contract/kit.ts';
import type { KitConfig } from '../../contract/tasks.ts';
import type { Command } from '../../toolkit/driver/command.ts';
import type { Config } from '../config/config.ts';
import type { UploadRule } from '../files/uploader.ts';
import type { FeedRates } from '../hub/rate.ts';
import { texts as media_texts } from '../media/texts.ts';
import type { VideoGrant } from '../media/viewers.ts';

/** On metered links live telemetry leaves in packets of this time. */
const metered_packet_ms = 1_000;

const risk_order = ['low', 'medium', 'high'] as const;

/** True, or the sentence an operator reads in `result.error`. */
export function commandPolicy(commands: Config['commands']) {
  const rank = risk_order.indexOf(commands.max_risk);
  return (
    asset: { readonly asset_id: string; readonly asset_key: string },
    command: Command,
  ): true | string => {
    const isDisabled = commands.disabled.some(
      (rule) =>
        (rule.asset === '*' || rule.asset === asset.asset_key || rule.asset === asset.asset_id) &&
        (rule.command === '*' || rule.command === command.name),
    );
    if (isDisabled) return `${command.name} is disabled on this kit by its configuration (commands.disabled)`;
    if (risk_order.indexOf(command.risk_level) <= rank) return true;
    return `${command.name} has ${command.risk_level} risk, and this kit allows ${commands.max_risk} at most (commands.max_risk)`;
  };
}

/** When files may be sent on a link; `default`: its type is not known. */
export function uploadRule(
  upload: Config['files']['upload'],
  link: LinkType | 'default',
  isMetered: boolean,
): UploadRule {
  const named = link === 'default' ? undefined : upload[link];
  if (named !== undefined) return named;
  return isMetered && upload.default === 'always' ? 'on_order' : upload.default;
}

/** What the cloud may ask for is bounded by the file: it can make the kit send less, never more. */
export class PacePolicy {
  readonly #config: () => Pick<Config, 'feeds' | 'uplink'>;
  readonly #linkInUse: () => LinkType | undefined;
  readonly #savedRates: () => Partial<FeedRates> | undefined;
  #cloud: KitConfig = {};

  /** `config` answers the present content of the file, `savedRates` the limits while power is saved. */
  constructor(
    config: () => Pick<Config, 'feeds' | 'uplink'>,
    linkInUse: () => LinkType | undefined,
    savedRates: () => Partial<FeedRates> | undefined = () => undefined,
  ) {
    this.#config = config;
    this.#linkInUse = linkInUse;
    this.#savedRates = savedRates;
  }

  /** `down/config`: replaces what an earlier one said. */
  apply(cloud: KitConfig): void {
    this.#cloud = cloud;
  }

  /** Messages a second, by feed. */
  rates(): { readonly default: number; readonly [feed: string]: number } {
    const { rates_hz, rate_default_hz } = this.#config().feeds;
    const requested = this.#cloud.rates_hz ?? {};
    const saved = this.#savedRates() ?? {};
    const rates: Record<string, number> = {};
    const feeds = [rates_hz, requested, saved].flatMap((each) => Object.keys(each));
    for (const feed of new Set([...feeds, 'default'])) {
      const local = lower(rates_hz[feed] ?? rate_default_hz, requested[feed] ?? requested['default']);
      rates[feed] = lower(local, saved[feed] ?? saved.default);
    }
    return { ...rates, default: rates['default'] ?? rate_default_hz };
  }

  packetMs(): number {
    const { packet_ms } = this.#config().uplink;
    return this.isMetered ? Math.max(packet_ms, metered_packet_ms) : packet_ms;
  }

  /** Whether the link in use is paid for by the byte. */
  get isMetered(): boolean {
    return this.isMeteredOn(this.#linkInUse());
  }

  isMeteredOn(link: LinkType | 'default' | undefined): boolean {
    return [...this.#config().uplink.metered, ...(this.#cloud.metered ?? [])].some((each) => each === link);
  }

  /** What the link in use allows for viewers of the cloud. A data cap that is used up forbids them, unless the file says `free`. */
  videoGrant({ metered, links, seconds_max, mb_max }: Config['video'], cap: DataCap | undefined): VideoGrant {
    const link = this.#linkInUse();
    const allowed = (link && links[link]) ?? (this.isMetered ? metered : undefined);
    if (allowed === 'free') return { kind: 'free' };
    if (allowed === 'never') return { kind: 'never', reason: media_texts.link_forbids(link ?? '') };
    if (cap?.state === 'exceeded') return { kind: 'never', reason: media_texts.cap_used(cap) };
    return allowed ? { kind: 'limited', seconds_max, bytes_max: mb_max * 1_000_000 } : { kind: 'free' };
  }

  /** kbit/s that the backlog may use on the link in use; 0: no cap. */
  backlogKbps(): number {
    const link = this.#linkInUse() ?? 'default';
    const { backlog_bytes_per_s } = this.#config().uplink;
    const local = (backlog_bytes_per_s[link] * 8) / 1000;
    const requested = this.#cloud.backlog_kbps?.[link] ?? this.#cloud.backlog_kbps?.default ?? 0;
    if (local === 0 || requested === 0) return Math.max(local, requested);
    return Math.min(local, requested);
  }
}

function lower(local: number, requested: number | undefined): number {
  return requested === undefined ? local : Math.min(local, requested);
}
