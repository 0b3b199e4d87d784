/** The assets of one host: what was announced of it, its channels, and what each of them last saw. */
import type { vendorcamFeeds } from '../../src/contract/feeds.ts';
import type { Command } from '../../src/driver/command.ts';
import type { AssetDescription, AssetSink, DriverHost } from '../../src/driver/driver.ts';
import { channelCommands, type Controls, hostCommands } from './commands.ts';
import { channelKey, type ChannelFacts, type HostFacts, rtspUrl } from './describe.ts';
import type { Device } from './device.ts';
import { fileNameOf } from './memory.ts';
import { savedZone } from './motion-switch.ts';
import type { HostOptions } from './options.ts';
import { type Asking, newAsking, type Seen } from './poll.ts';
import { Publisher } from './publishing.ts';
import type { Outcome } from './replies.ts';
import { StateFile } from './state.ts';

export type Host = DriverHost<typeof vendorcamFeeds>;

export interface ArrangementParts {
  readonly host: Host;
  readonly options: HostOptions;
  readonly device: Device;
  readonly controls: Controls;
  readonly heartbeat_ms: number;
  /** False when another host of this driver has announced the asset already. */
  readonly claim: (asset_key: string) => boolean;
}

interface Unit {
  readonly sink: AssetSink<typeof vendorcamFeeds>;
  readonly publisher: Publisher;
  /** Description and commands as they were announced. */
  readonly told: string;
}

interface Channel {
  readonly asking: Asking;
  readonly publisher: Publisher;
  failures: number;
}

/** Polls in a row that fail for one channel before it counts as lost. */
const channel_failures_max = 3;

export class Arrangement {
  readonly #parts: ArrangementParts;
  /** By asset_key; they outlive a lost connection. */
  readonly #units = new Map<string, Unit>();
  /** By number, only those that can be asked now. */
  #channels: ReadonlyMap<number, Channel> = new Map();
  #recorder: Publisher | undefined;

  constructor(parts: ArrangementParts) {
    this.#parts = parts;
  }

  get askings(): readonly Asking[] {
    return [...this.#channels.values()].map(({ asking }) => asking);
  }

  /** Announces what is new or has changed, and tells which channels are away. */
  async arrange(facts: HostFacts, channels: readonly ChannelFacts[], password: string): Promise<void> {
    const served = channels.filter(({ channel }) => this.#parts.options.channels?.includes(channel) ?? true);
    const urls = await this.#streams(facts, served, password);
    if (facts.isRecorder) {
      this.#recorder = this.#announce(
        { ...describe(facts), rtsp_url: null },
        hostCommands(this.#parts.controls, facts.abilities.canReboot),
      );
    }
    const found = new Map<number, Channel>();
    for (const channel of served) {
      const about = { ...this.#describeChannel(facts, channel), rtsp_url: urls.get(channel.channel) ?? null };
      const away = whyAway(channel);
      const publisher = this.#publisher(about, this.#commandsOf(facts, channel, about.asset_key), away);
      if (!publisher) continue;
      if (away === undefined) {
        found.set(channel.channel, { asking: newAsking(channel.channel), publisher, failures: 0 });
      } else {
        publisher.lose(away);
      }
    }
    this.#removeOthers(facts, served);
    this.#channels = found;
  }

  /** Publishes what the channels see. A channel that fails again and again is lost alone. */
  see(seen: ReadonlyMap<number, Seen>): void {
    this.#recorder?.see({ motion: null, ai: null });
    for (const [number, channel] of this.#channels) {
      const told = seen.get(number);
      if (!told) continue;
      if ('alarms' in told) {
        channel.failures = 0;
        channel.publisher.see(told.alarms);
      } else {
        channel.failures += 1;
        const isGone = told.fault.kind === 'channel_offline' || channel.failures >= channel_failures_max;
        if (isGone) channel.publisher.lose(told.fault.sentence);
      }
    }
  }

  /** The host is away, and with it everything on it. */
  lose(reason: string): void {
    for (const { publisher } of this.#units.values()) publisher.lose(reason);
    this.#channels = new Map();
  }

  /** The connector stops and sees nothing more; the devices may go on. */
  quiet(reason: string): void {
    for (const { publisher } of this.#units.values()) publisher.quiet(reason);
  }

  async #streams(
    facts: HostFacts,
    channels: readonly ChannelFacts[],
    password: string,
  ): Promise<ReadonlyMap<number, string>> {
    const { device, options } = this.#parts;
    const { rtsp_port } = facts;
    if (rtsp_port === null) return new Map();
    const ready = channels.filter((channel) => whyAway(channel) === undefined);
    const replies: readonly Outcome[] =
      ready.length === 0
        ? []
        : await device.ask(
            ready.map(({ channel }) => ({ cmd: 'GetRtspUrl', action: 0, param: { channel } })),
          );
    const host = { options, password, rtsp_port };
    return new Map(ready.map(({ channel }, index) => [channel, rtspUrl(replies[index], channel, host)]));
  }

  #describeChannel(facts: HostFacts, channel: ChannelFacts): AssetDescription {
    if (!facts.isRecorder) return describe(facts);
    const { asset_key } = facts;
    const about = { asset_key: channelKey(asset_key, channel), name: channel.name, model: channel.model };
    return { ...common, ...about, firmware: null, parent_key: asset_key };
  }

  #commandsOf(facts: HostFacts, { channel }: ChannelFacts, asset_key: string): readonly Command[] {
    const { controls, host } = this.#parts;
    const { abilities } = facts;
    const zone = new StateFile(host.stateFile(fileNameOf('zone', asset_key)), savedZone);
    const { scheduleVersion } = abilities;
    const own = channelCommands({
      ...controls,
      channel,
      abilities: abilities.ofChannel(channel),
      scheduleVersion,
      zone,
    });
    return facts.isRecorder ? own : [...own, ...hostCommands(controls, abilities.canReboot)];
  }

  /** An asset that is away keeps what was said of it: announcing it again would say that it is there. */
  #publisher(
    about: AssetDescription,
    commands: readonly Command[],
    away: string | undefined,
  ): Publisher | undefined {
    const known = this.#units.get(about.asset_key);
    if (known && away !== undefined) return known.publisher;
    return this.#announce(away === undefined ? about : { ...about, offline_reason: away }, commands);
  }

  #announce(about: AssetDescription, commands: readonly Command[]): Publisher | undefined {
    const { host, claim, heartbeat_ms } = this.#parts;
    const { asset_key, name } = about;
    if (!claim(asset_key)) {
      host.log.warn({ asset_key, name }, 'this camera is served through another host already');
      return undefined;
    }
    const told = JSON.stringify([
      about,
      commands.map((command) => [command.name, command.description, command.input_schema]),
    ]);
    const known = this.#units.get(asset_key);
    if (known?.told === told) return known.publisher;
    const sink = host.announce(about, commands);
    const publisher = known?.publisher ?? new Publisher(sink, heartbeat_ms);
    this.#units.set(asset_key, { sink, publisher, told });
    return publisher;
  }

  /** Channels that are no part of the recorder any more. */
  #removeOthers(facts: HostFacts, served: readonly ChannelFacts[]): void {
    const keys = new Set(served.map((channel) => this.#describeChannel(facts, channel).asset_key));
    keys.add(facts.asset_key);
    for (const [key, { sink }] of this.#units) {
      if (keys.has(key)) continue;
      sink.remove();
      this.#units.delete(key);
    }
  }
}

const common = { type: 'camera', protocol: 'vendorcam', vendor: 'Reolink' } as const;

function describe({ asset_key, name, model, firmware }: HostFacts): AssetDescription {
  return { ...common, asset_key, name, model, firmware };
}

/** Why the channel cannot be asked now; undefined when it can. */
function whyAway({ online, asleep }: ChannelFacts): string | undefined {
  if (asleep) return 'the camera sleeps to save its battery and is not woken';
  return online ? undefined : 'the recorder does not reach this camera';
}
