/** The assets of one host: the announced descriptions, its channels, and the last detections of each. */
import { StateFile, stateFileName } from '../../../src/toolkit/device/state-file.ts';
import type { DeviceName } from '../../../src/toolkit/device/device-name.ts';
import { type AiType, alarm_picture_bytes_max, type vendorcamFeeds } from '../../../src/contract/feeds.ts';
import type { Command } from '../../../src/toolkit/driver/command.ts';
import type {
  AssetDescription,
  AssetSink,
  DriverHost,
  ReportedHealth,
} from '../../../src/toolkit/driver/driver.ts';
import { channelCommands, type Controls, hostCommands } from '../commands/commands.ts';
import { logRefused } from '../../../src/toolkit/driver/refused-addresses.ts';
import { fails, notOffered, works } from '../../../src/toolkit/driver/health.ts';
import type { DeviceStream } from '../../../src/toolkit/driver/stream-login.ts';
import { type ChannelFacts, channelKey } from './channel-list.ts';
import { type HostFacts, streamOf } from './describe.ts';
import type { Device } from '../host/device.ts';
import { type Preset, presetsIn, presetsQuestion } from '../commands/presets.ts';
import { savedZone } from '../commands/motion-switch.ts';
import type { HostOptions } from '../options.ts';
import { type Asking, newAsking, type Seen } from './poll.ts';
import { texts } from '../texts.ts';
import type { Outcome } from '../host/replies.ts';
import type { Alarms, Reported } from './alarms.ts';

export type Host = DriverHost<typeof vendorcamFeeds>;

export interface ChannelLayoutParts {
  readonly host: Host;
  readonly options: HostOptions;
  /** Other devices are configured at the host of this one. */
  readonly is_host_shared: boolean;
  readonly device: Device;
  /** Where the device answers: the stream is fetched there, wherever its name leads by then. */
  readonly place: Pick<DeviceName, 'address'>;
  readonly controls: Controls;
  readonly heartbeat_ms: number;
  /** Polls do not replace what the device pushed less than this before. */
  readonly settle_ms: number;
  /** False when another host of this driver already announced the asset. */
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
  /** When the camera last pushed detections (monotonic). */
  reported_mono_ms: number;
}

const fresh = { failures: 0, reported_mono_ms: Number.NEGATIVE_INFINITY } as const;

/** Polls in a row that fail for one channel before it counts as lost. */
const channel_failures_max = 3;

export class ChannelLayout {
  readonly #parts: ChannelLayoutParts;
  /** By asset_key; they outlive a lost connection. */
  readonly #units = new Map<string, Unit>();
  /** By number, only the reachable ones. */
  #channels: ReadonlyMap<number, Channel> = new Map();
  /** Numbers of the served channels that cannot be reached. */
  #away: ReadonlySet<number> = new Set();
  #recorder: Publisher | undefined;

  constructor(parts: ChannelLayoutParts) {
    this.#parts = parts;
  }

  get askings(): readonly Asking[] {
    return [...this.#channels.values()].map(({ asking }) => asking);
  }

  /** Announces new and changed assets, and publishes which channels are offline. */
  async arrange(facts: HostFacts, channels: readonly ChannelFacts[], password: string): Promise<void> {
    const served = channels.filter(({ channel }) => this.#parts.options.channels?.includes(channel) ?? true);
    const streams = await this.#streams(facts, served, password);
    const presets = await this.#presets(facts, served);
    if (facts.isRecorder) {
      this.#recorder = this.#announce(
        { ...describe(facts), health: { state: works, commands: notOffered() } },
        hostCommands(this.#parts.controls, facts.abilities.canReboot),
      );
    }
    const found = new Map<number, Channel>();
    for (const channel of served) {
      const stream = streams.get(channel.channel);
      const about = {
        ...this.#describeChannel(facts, channel),
        rtsp_url: stream?.rtsp_url,
        ...this.#picturesOf(facts, channel),
        health: healthOf(facts, stream),
      };
      const away = whyAway(channel);
      const publisher = this.#publisher(
        about,
        this.#commandsOf(facts, channel, { asset_key: about.asset_key, presets }),
        away,
      );
      if (!publisher) continue;
      if (away === undefined) {
        found.set(channel.channel, { asking: newAsking(channel.channel), publisher, ...fresh });
      } else {
        publisher.lose(away);
      }
    }
    this.#removeOthers(facts, served);
    this.#channels = found;
    this.#away = new Set(served.map(({ channel }) => channel).filter((channel) => !found.has(channel)));
  }

  /**
   * Publishes the detections of a poll that began at `asked_mono_ms`. A channel that fails repeatedly is lost alone. Returns
   * whether a detection began or ended that no report announced.
   */
  see(seen: ReadonlyMap<number, Seen>, asked_mono_ms: number): boolean {
    let isNews = false;
    this.#recorder?.see({ motion: null, ai: null, fitted: [] });
    for (const [number, channel] of this.#channels) {
      const told = seen.get(number);
      if (!told) continue;
      if ('alarms' in told) {
        channel.failures = 0;
        const isOvertaken = asked_mono_ms < channel.reported_mono_ms + this.#parts.settle_ms;
        if (!isOvertaken) isNews = channel.publisher.see(told.alarms) || isNews;
        channel.publisher.setEvents(told.alarms);
      } else {
        channel.failures += 1;
        const isGone = told.fault.kind === 'channel_offline' || channel.failures >= channel_failures_max;
        if (isGone) channel.publisher.lose(told.fault.sentence);
      }
    }
    return isNews;
  }

  /**
   * Publishes detections that the device pushes. Channels that are away, such as a camera that sleeps, are left out; returns
   * whether a served channel had detections: it has woken up.
   */
  report(reports: readonly Reported[]): boolean {
    let hasWoken = false;
    for (const report of reports) {
      const channel = this.#channels.get(report.channel);
      if (!channel) {
        hasWoken ||= this.#away.has(report.channel) && isDetection(report);
        continue;
      }
      channel.reported_mono_ms = performance.now();
      channel.publisher.report(report);
    }
    return hasWoken;
  }

  /** The host is lost, and with it all its assets. */
  lose(reason: string): void {
    for (const { publisher } of this.#units.values()) publisher.lose(reason);
    this.#channels = new Map();
  }

  /** The connector stops and detections end; the devices may continue to work. */
  quiet(reason: string): void {
    for (const { publisher } of this.#units.values()) publisher.quiet(reason);
  }

  async #streams(
    facts: HostFacts,
    channels: readonly ChannelFacts[],
    password: string,
  ): Promise<ReadonlyMap<number, DeviceStream>> {
    const { device, options, place, is_host_shared } = this.#parts;
    const { rtsp_port } = facts;
    if (rtsp_port === null) return new Map();
    const ready = channels.filter((channel) => whyAway(channel) === undefined);
    const replies: readonly Outcome[] =
      ready.length === 0
        ? []
        : await device.ask(
            ready.map(({ channel }) => ({ cmd: 'GetRtspUrl', action: 0, param: { channel } })),
          );
    const onRefused = logRefused(this.#parts.host.log, { camera: options.name });
    const host = { options, address: place.address, password, rtsp_port, is_host_shared, onRefused };
    const found = ready.map(
      ({ channel }, index) => [channel, streamOf(replies[index], channel, host)] as const,
    );
    return new Map(
      found.flatMap(([channel, stream]) => (stream === undefined ? [] : [[channel, stream] as const])),
    );
  }

  #describeChannel(facts: HostFacts, channel: ChannelFacts): AssetDescription {
    if (!facts.isRecorder) return describe(facts);
    const { asset_key } = facts;
    const { name, model, firmware } = channel;
    return {
      ...common,
      asset_key: channelKey(asset_key, channel),
      name,
      model,
      firmware,
      parent_key: asset_key,
    };
  }

  /** By channel: those of the channels that have presets and can be asked now. */
  async #presets(facts: HostFacts, channels: readonly ChannelFacts[]): Promise<PresetsByChannel> {
    const { abilities } = facts;
    const ready = channels
      .filter((channel) => whyAway(channel) === undefined)
      .map(({ channel }) => channel)
      .filter((channel) => abilities.ofChannel(channel).hasPresets);
    const replies = ready.length === 0 ? [] : await this.#parts.device.ask(ready.map(presetsQuestion));
    return new Map(ready.map((channel, index) => [channel, presetsIn(replies[index]) ?? []]));
  }

  #commandsOf(
    facts: HostFacts,
    { channel }: ChannelFacts,
    { asset_key, presets }: { readonly asset_key: string; readonly presets: PresetsByChannel },
  ): readonly Command[] {
    const { controls, host } = this.#parts;
    const { abilities } = facts;
    const zone = new StateFile(host.stateFile(stateFileName('zone', asset_key)), savedZone);
    const { scheduleVersion } = abilities;
    const own = channelCommands({
      ...controls,
      channel,
      abilities: abilities.ofChannel(channel),
      presets: presets.get(channel) ?? [],
      scheduleVersion,
      zone,
    });
    return facts.isRecorder ? own : [...own, ...hostCommands(controls, abilities.canReboot)];
  }

  #picturesOf(
    { abilities }: HostFacts,
    { channel }: ChannelFacts,
  ): Pick<AssetDescription, 'takePicture' | 'takeAlarmPicture'> {
    const { device, options } = this.#parts;
    const isOffered = options.commands.includes('snapshot') && abilities.ofChannel(channel).hasPictures;
    return {
      takePicture: isOffered ? async (signal) => device.picture(channel, signal) : undefined,
      takeAlarmPicture: options.alarm_picture
        ? async (signal) => device.smallPicture(channel, alarm_picture_bytes_max, signal)
        : undefined,
    };
  }

  /** An offline asset keeps its description: announcing it again would set it online. */
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
      host.log.warn({ asset_key, name }, texts.served_elsewhere);
      return undefined;
    }
    const told = JSON.stringify([
      about,
      about.takePicture !== undefined,
      commands.map((command) => [command.name, command.description, command.input_schema]),
    ]);
    const known = this.#units.get(asset_key);
    if (known?.told === told) return known.publisher;
    const sink = host.announce({ ...about, configured: true }, commands);
    const publisher = known?.publisher ?? new Publisher(sink, heartbeat_ms);
    this.#units.set(asset_key, { sink, publisher, told });
    return publisher;
  }

  /** Channels that the recorder no longer has. */
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

type PresetsByChannel = ReadonlyMap<number, readonly Preset[]>;

const common = { type: 'camera', protocol: 'vendorcam', vendor: 'Reolink' } as const;

function describe({ asset_key, name, model, firmware }: HostFacts): AssetDescription {
  return { ...common, asset_key, name, model, firmware };
}

/** Why the stream, pictures or commands are missing. */
function healthOf({ rtsp_port }: HostFacts, stream: DeviceStream | undefined): ReportedHealth {
  const fault = stream?.stream_fault ?? null;
  const none = notOffered(rtsp_port === null ? texts.rtsp_off : undefined);
  const missing = { still: notOffered(), commands: notOffered() };
  return { state: works, stream: fault === null ? none : fails(fault), ...missing };
}

function isDetection({ motion, visitor, ai = [] }: Reported): boolean {
  return motion === true || visitor === true || ai.length > 0;
}

/** Why the channel cannot be polled now; undefined when it can. */
function whyAway({ online, asleep }: ChannelFacts): string | undefined {
  if (asleep) return texts.asleep;
  return online ? undefined : texts.channel_offline;
}

// Converts detections of a channel into feed messages: edges at once, the status also as a rare heartbeat; a loss ends detections.

type Sink = Pick<AssetSink<typeof vendorcamFeeds>, 'publish' | 'setOnline' | 'setHealth'>;

/** Null: unknown, or there is no such detector. */
interface Detected extends Pick<Alarms, 'motion' | 'ai'> {
  readonly visitor: boolean | null;
}

const nothing: Detected = { motion: null, ai: null, visitor: null };

export class Publisher {
  readonly #sink: Sink;
  readonly #heartbeat_ms: number;
  #now: Detected = nothing;
  #fitted: readonly AiType[] = [];
  #status = '';
  #status_mono_ms = 0;

  constructor(sink: Sink, heartbeat_ms: number) {
    this.#sink = sink;
    this.#heartbeat_ms = heartbeat_ms;
  }

  /** The channel answers with these detections. Returns whether one began or ended since the answer before. */
  see({ motion, ai, fitted, visitor: rings }: Alarms): boolean {
    const visitor = rings ?? null;
    const before = this.#now;
    this.#sink.setOnline(true);
    // A doorbell that is none any more does not ring.
    this.#turn({ motion, ai, visitor: rings ?? false }, texts.no_longer_reported);
    this.#now = { motion, ai, visitor };
    this.#fitted = fitted;
    this.#tell({ online: true, motion_alarm: motion, ai_alarm: ai && ai.length > 0 });
    return [
      [before.motion, motion],
      [kindsOf(before.ai), kindsOf(ai)],
      [before.visitor, visitor],
    ].some(([earlier, now]) => earlier !== null && earlier !== now);
  }

  /** Reports whether it detects anything at all. */
  setEvents({ motion, ai }: Pick<Alarms, 'motion' | 'ai'>): void {
    this.#sink.setHealth('events', motion === null && ai === null ? notOffered(texts.no_detector) : works);
  }

  /** The camera pushes these detections. Only detectors that a poll has shown count, else the next poll would end them. */
  report({ motion, ai, visitor }: Reported): void {
    const known = this.#now;
    const fitted = this.#fitted;
    if (known.motion === null && known.ai === null) return;
    this.see({
      motion: known.motion === null ? null : (motion ?? known.motion),
      ai: known.ai && (ai?.filter((type) => fitted.includes(type)) ?? known.ai),
      fitted,
      ...(known.visitor === null ? {} : { visitor: visitor ?? known.visitor }),
    });
  }

  /** The channel cannot be polled: its detections end, with the reason. */
  lose(reason: string): void {
    this.quiet(reason);
    this.#tell({ online: false, motion_alarm: null, ai_alarm: null });
    this.#sink.setOnline(false, reason);
  }

  /** Polling stopped: all detections end. */
  quiet(reason: string): void {
    this.#turn(nothing, reason);
    this.#now = nothing;
  }

  /** Publishes what differs from before. A detector that stops reporting ends its detection, with this reason. */
  #turn({ motion, ai, visitor }: Detected, reason: string): void {
    const timestamp = new Date().toISOString();
    const about = (value: unknown) => (value === null ? { timestamp, reason } : { timestamp });
    const { motion: was_motion, ai: was_ai, visitor: was_ringing } = this.#now;
    if (motion === null ? was_motion === true : motion !== was_motion)
      this.#sink.publish('motion', { detected: motion === true, ...about(motion) });
    const types = [...(ai ?? [])];
    if (ai === null ? was_ai && was_ai.length > 0 : kindsOf(ai) !== kindsOf(was_ai))
      this.#sink.publish('ai_detection', { detected: types.length > 0, types, ...about(ai) });
    if ((visitor === true) !== (was_ringing === true))
      this.#sink.publish('doorbell', { detected: visitor === true, ...about(visitor) });
  }

  #tell(status: { online: boolean; motion_alarm: boolean | null; ai_alarm: boolean | null }): void {
    const now_ms = performance.now();
    const told = JSON.stringify(status);
    const isDue = status.online && now_ms - this.#status_mono_ms >= this.#heartbeat_ms;
    if (told === this.#status && !isDue) return;
    this.#status = told;
    this.#status_mono_ms = now_ms;
    this.#sink.publish('status', status);
  }
}

function kindsOf(ai: readonly AiType[] | null): string | null {
  return ai && ai.join();
}
