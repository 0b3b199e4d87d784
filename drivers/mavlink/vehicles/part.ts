/** A camera, a gimbal or another component of a vehicle: a child of the vehicle's asset. */
import { isIP } from 'node:net';
import { isOwnHost } from '../../../src/toolkit/device/own-host.ts';
import { deviceAddress, type DeviceAddress, plainHost } from '../../../src/toolkit/driver/device-address.ts';
import type { AssetDescription } from '../../../src/toolkit/driver/driver.ts';
import { fails, notOffered } from '../../../src/toolkit/driver/health.ts';
import type { OnRefused } from '../../../src/toolkit/driver/refused-addresses.ts';
import { texts as address_texts } from '../../../src/toolkit/driver/texts.ts';
import type { StreamChoice } from '../options.ts';
import { silenceSince } from '../../../src/platform/stalls.ts';
import { changes_rate, parts_appearing_rate } from './newcomers.ts';
import { TokenBucket } from '../../../src/platform/token-bucket.ts';
import { blank, type Decoded, type Messages } from '../wire/messages.ts';
import { type Sender, senderOf } from '../reports/kind.ts';
import { type StatusText, StatusTexts } from '../reports/status-text.ts';
import type { DroneSink } from './publishing.ts';
import { texts } from './texts.ts';
import type { Vehicle } from './vehicle.ts';

export interface PartParts {
  readonly parent_key: string;
  readonly parent_name: string;
  readonly compid: number;
  /** `camera_device_id` of a camera that the autopilot answers for. */
  readonly device?: number | undefined;
  readonly part: string;
  readonly type: 'camera' | 'sensor';
  /** The stream that is shown of several; one that is not thermal if omitted. */
  readonly stream?: StreamChoice;
  /** Where it was first received from; an address of its vehicle if omitted. */
  readonly source?: string;
  readonly now_ms: number;
  readonly offline_after_ms: number;
  readonly announce: (about: AssetDescription) => DroneSink;
  /** Sends a command to the component that requests a message. */
  readonly request: (asked: MessageRequest) => void;
  /** The camera reported a stream that cannot be used. */
  readonly onRefused: OnRefused;
}

type MessageRequest = Pick<Messages['COMMAND_LONG'], 'command' | 'param1' | 'param2'>;

interface Maker {
  readonly vendor: string;
  readonly model: string;
}

const camera_information = 259;
const gimbal_device_information = 283;
const video_stream_information = 269;
const component_information_basic = 396;
/** Without a new answer. */
const requests_max = 4;
const streams_max = 8;
const request_pause_ms = 2_000;

export class Part {
  last_ms: number;
  #source: string;
  readonly #parts: PartParts;
  readonly #texts = new StatusTexts();
  readonly #sink: DroneSink;
  #online = true;
  #maker: Maker | undefined;
  /** By number. */
  readonly #streams = new Map<number, Stream>();
  /** Streams that the camera says it has. */
  #count: number | undefined;
  #described = '';
  /** It was described otherwise since it was announced. */
  #isStale = false;
  readonly #changed = new TokenBucket(changes_rate);
  #requests = 0;
  #requested_ms = Number.NEGATIVE_INFINITY;

  constructor(parts: PartParts) {
    this.#parts = parts;
    this.last_ms = parts.now_ms;
    this.#source = parts.source ?? own_source;
    this.#sink = this.#announce();
  }

  get source(): string {
    return this.#source;
  }

  get parent_key(): string {
    return this.#parts.parent_key;
  }

  get online(): boolean {
    return this.#online;
  }

  /** Whether it is a component of its own of this maker. */
  isComponentOf({ vendor, model }: Maker): boolean {
    const isOwn = this.#parts.device === undefined && model !== '';
    return isOwn && this.#maker?.vendor === vendor && this.#maker.model === model;
  }

  /** Its streams for the status, such as `Falcon camera: Thermal (thermal), Daylight (used)`; undefined: none. */
  get streams(): string | undefined {
    const used = this.#used;
    const all = [...this.#streams.values()].toSorted((a, b) => a.id - b.id);
    const shown = all.map((stream) => {
      const marks = [
        ...(stream === used ? ['used'] : []),
        ...(stream.isThermal ? ['thermal'] : []),
        ...(stream.isRunning ? [] : ['not running']),
        ...('refused' in stream.address ? [stream.address.refused] : []),
      ];
      return marks.length === 0 ? stream.name : `${stream.name} (${marks.join(', ')})`;
    });
    return shown.length === 0 ? undefined : `${this.#describe().name}: ${shown.join(', ')}`;
  }

  /** Whether a message from there counts: while it is received from one source, only its vehicle may speak for it too. */
  hears(source: string, now_ms: number): boolean {
    const isOther = source !== this.#source && source !== own_source;
    if (isOther && silenceSince(this.last_ms, now_ms) < this.#parts.offline_after_ms) return false;
    this.#source = source;
    return true;
  }

  /** Returns the texts that are complete, or have waited too long for a part. */
  receive(message: Decoded, now_ms: number): readonly StatusText[] {
    this.last_ms = now_ms;
    if (!this.#online) {
      this.#online = true;
      this.#sink.setOnline(true);
    }
    this.#learn(message);
    if (this.#isStale && this.#changed.take(now_ms)) this.#announce();
    const late = this.#texts.overdue(now_ms);
    const text = message.name === 'STATUSTEXT' ? this.#texts.receive(message.fields, now_ms) : undefined;
    const all = text ? [...late, text] : late;
    return all.map((each) => Object.assign({}, each, { text: `${this.#parts.part}: ${each.text}` }));
  }

  #learn(message: Decoded): void {
    const maker = makerOf(message);
    if (maker) this.#maker = maker;
    else if (message.name === 'VIDEO_STREAM_INFORMATION') this.#learnStream(message.fields);
    else return;
    this.#isStale = JSON.stringify(this.#describe()) !== this.#described;
  }

  #learnStream(fields: Messages['VIDEO_STREAM_INFORMATION']): void {
    this.#count = Math.min(fields.count, streams_max);
    // An ArduPilot that was told of no stream reports one without anything (AP_Camera_Backend::send_video_stream_information).
    if (fields.uri === '') return;
    const stream = readStream(fields);
    if (!this.#streams.has(stream.id)) {
      if (this.#streams.size >= streams_max) return;
      this.#requests = 0;
    }
    this.#streams.set(stream.id, stream);
    if ('refused' in stream.address) this.#parts.onRefused(fields.uri, stream.address.refused);
  }

  remove(): void {
    this.#sink.remove();
  }

  tick(now_ms: number): void {
    const silence_ms = silenceSince(this.last_ms, now_ms);
    if (this.#online && silence_ms >= this.#parts.offline_after_ms) {
      this.#online = false;
      this.#sink.setOnline(false, texts.part_silent(Math.round(silence_ms / 1_000)));
    }
    const streams = this.#missingStreams;
    if (
      (this.#maker !== undefined && streams.length === 0) ||
      this.#requests >= requests_max ||
      !this.#online ||
      now_ms - this.#requested_ms < request_pause_ms
    )
      return;
    const isRepeated = this.#requests % 2 === 1;
    this.#requests += 1;
    this.#requested_ms = now_ms;
    if (this.#maker === undefined) this.#parts.request(messageRequest(this.#informative, 0, isRepeated));
    for (const id of streams) this.#parts.request(messageRequest(video_stream_information, id, isRepeated));
  }

  /** Numbers of the streams that were not received; 0 stands for all. */
  get #missingStreams(): readonly number[] {
    if (this.#parts.type !== 'camera' || this.#streams.size >= (this.#count ?? 1)) return [];
    if (this.#streams.size === 0) return [0];
    const all = Array.from({ length: this.#count ?? 0 }, (_, index) => index + 1);
    return all.filter((id) => !this.#streams.has(id));
  }

  /** The stream that is shown: the one that is wanted, else one that is not thermal, else one that runs. */
  get #used(): Stream | undefined {
    const usable = [...this.#streams.values()].filter(({ address }) => 'url' in address);
    const rank = (stream: Stream): string =>
      [!isWanted(stream, this.#parts.stream), stream.isThermal, !stream.isRunning].map(Number).join('');
    return usable.toSorted((a, b) => rank(a).localeCompare(rank(b)) || a.id - b.id)[0];
  }

  /** The message in which a component of this kind identifies itself. */
  get #informative(): number {
    if (this.#parts.type === 'camera') return camera_information;
    return this.#parts.part === 'gimbal' ? gimbal_device_information : component_information_basic;
  }

  #announce(): DroneSink {
    const about = this.#describe();
    this.#described = JSON.stringify(about);
    this.#isStale = false;
    return this.#parts.announce(about);
  }

  #describe(): AssetDescription {
    const { parent_key, parent_name, compid, device, part, type } = this.#parts;
    const component = `${parent_key}:component-${compid}`;
    return {
      asset_key: device === undefined ? component : `${component}-camera-${device}`,
      name: `${parent_name} ${part}`,
      type,
      protocol: 'mavlink',
      parent_key,
      vendor: this.#maker?.vendor || null,
      model: this.#maker?.model || null,
      feeds: [],
      ...this.#video(),
    };
  }

  #video(): Pick<AssetDescription, 'rtsp_url' | 'health'> {
    const used = this.#used;
    if (used && 'url' in used.address) return { rtsp_url: used.address.url, health: {} };
    const [first] = this.#streams.values();
    if (first && 'refused' in first.address)
      return { health: { stream: fails(texts.stream_unusable(first.name, first.address.refused)) } };
    return this.#count === 0 ? { health: { stream: notOffered(texts.no_stream) } } : {};
  }
}

/** The source of what is received from an address of the vehicle itself. */
export const own_source = 'vehicle';
/** Components that are tracked, those of configured vehicles not counted. */
const parts_max = 128;
const own_parts_max = 16;
/** Of a vehicle, from other addresses than its own: any host may claim to be one. */
const foreign_parts_max = 4;

interface PartsNeeds extends Pick<PartParts, 'announce' | 'offline_after_ms'> {
  readonly streamOf: (vehicle: Vehicle) => StreamChoice;
  readonly onRefused: (asset_key: string) => OnRefused;
  readonly request: (fields: Messages['COMMAND_LONG'], vehicle: Vehicle) => void;
  /** Another component is ignored because of this limit. */
  readonly onFull: (limit: number) => void;
}

interface FromPart {
  readonly vehicle: Vehicle;
  readonly source: string;
  readonly sysid: number;
  readonly compid: number;
  readonly device?: number;
  readonly now_ms: number;
}

type PartSender = Extract<Sender, { readonly is: 'part' }>;

/** The components of all vehicles of a driver. */
export class Parts {
  /** By vehicle and component: the same for every link and address of the vehicle. */
  readonly #all = new Map<string, Part>();
  /** Parents that are not in the configuration. */
  readonly #unconfigured = new Set<string>();
  readonly #appearing = new TokenBucket(parts_appearing_rate);
  readonly #needs: PartsNeeds;

  constructor(needs: PartsNeeds) {
    this.#needs = needs;
  }

  receive(message: Decoded, from: FromPart): readonly StatusText[] {
    const { vehicle, source, compid, now_ms } = from;
    const key = `${vehicle.asset_key}.${compid}`;
    const known = this.#all.get(key);
    if (known) return known.hears(source, now_ms) ? known.receive(message, now_ms) : [];
    const sender = message.name === 'HEARTBEAT' ? senderOf(message.fields) : undefined;
    if (sender?.is === 'part') this.#add(key, sender, from);
    return [];
  }

  /** What the active autopilot of a vehicle reports of cameras that it answers for (mavlink#2121): they are there while it is. */
  ofAutopilot(message: Decoded, from: Omit<FromPart, 'source'>): void {
    const { vehicle, compid, now_ms } = from;
    for (const device of devicesOf(message)) {
      const key = `${vehicle.asset_key}.${compid}-camera-${device}`;
      if (message.name === 'CAMERA_INFORMATION' && !this.#all.has(key) && !this.#isComponent(message, from)) {
        const part = device === 1 ? 'camera' : `camera ${device}`;
        this.#add(key, { part, asset: 'camera' }, { ...from, source: own_source, device });
      }
      this.#all.get(key)?.receive(message, now_ms);
    }
  }

  /** Whether it is a camera with heartbeats of its own, of which an ArduPilot reports too (AP_Camera_MAVLinkCamV2). */
  #isComponent(message: Decoded, { vehicle }: Pick<FromPart, 'vehicle'>): boolean {
    const maker = makerOf(message);
    return maker !== undefined && this.#of(vehicle).some(([, part]) => part.isComponentOf(maker));
  }

  /** The streams of the cameras of a vehicle. */
  streamsOf(vehicle: Pick<Vehicle, 'asset_key'>): readonly string[] {
    return this.#of(vehicle).flatMap(([, { streams }]) => streams ?? []);
  }

  #add(key: string, sender: Pick<PartSender, 'part' | 'asset'>, from: FromPart): void {
    const { vehicle, now_ms } = from;
    if (!vehicle.isConfigured) this.#unconfigured.add(vehicle.asset_key);
    const limit = this.#limit(from);
    if (limit !== undefined) this.#needs.onFull(limit);
    else if (this.#appearing.take(now_ms)) this.#all.set(key, this.#part(sender, from));
  }

  tick(now_ms: number): void {
    for (const part of this.#all.values()) part.tick(now_ms);
  }

  /** Removes those of a vehicle. */
  removeOf({ asset_key }: Pick<Vehicle, 'asset_key'>): void {
    this.#unconfigured.delete(asset_key);
    for (const each of this.#of({ asset_key })) this.#remove(...each);
  }

  #of({ asset_key }: Pick<Vehicle, 'asset_key'>): readonly (readonly [key: string, part: Part])[] {
    return [...this.#all].filter(([, { parent_key }]) => parent_key === asset_key);
  }

  #part(
    { part, asset: type }: Pick<PartSender, 'part' | 'asset'>,
    { vehicle, source, sysid, compid, device, now_ms }: FromPart,
  ): Part {
    const { asset_key: parent_key, name: parent_name } = vehicle;
    const { announce, offline_after_ms, onRefused, request, streamOf } = this.#needs;
    return new Part({
      parent_key,
      parent_name,
      compid,
      device,
      part,
      type,
      stream: streamOf(vehicle),
      source,
      now_ms,
      offline_after_ms,
      announce,
      // What an autopilot is asked for is one at a time.
      request: (asked) => {
        const target = { target_system: sysid, target_component: compid };
        if (device === undefined) request({ ...blank('COMMAND_LONG'), ...target, ...asked }, vehicle);
      },
      onRefused: onRefused(parent_key),
    });
  }

  /** The limit that one more would exceed; an offline one of the same kind is removed for it. */
  #limit({ vehicle, source }: FromPart): number | undefined {
    const isOwn = source === own_source;
    const max = isOwn ? own_parts_max : foreign_parts_max;
    const same = this.#of(vehicle).filter(([, part]) => (part.source === own_source) === isOwn);
    if (same.length >= max) {
      const offline = same.filter(([, part]) => !part.online);
      const [longest] = offline.toSorted(([, a], [, b]) => a.last_ms - b.last_ms);
      if (!longest) return max;
      this.#remove(...longest);
    }
    const counted = [...this.#all.values()].filter(({ parent_key }) => this.#unconfigured.has(parent_key));
    return !vehicle.isConfigured && counted.length >= parts_max ? parts_max : undefined;
  }

  #remove(key: string, part: Part): void {
    part.remove();
    this.#all.delete(key);
  }
}

const devices: readonly number[] = [1, 2, 3, 4, 5, 6];

/**
 * The cameras of an autopilot that a message is about; a heartbeat is about all. ArduPilot leaves their number 0 and tells several
 * apart by their lens (AP_Camera_Backend::send_camera_information), or by their gimbal (ArduPilot#24551).
 */
function devicesOf({ name, fields }: Decoded): readonly number[] {
  if (name === 'HEARTBEAT') return devices;
  if (name !== 'CAMERA_INFORMATION' && name !== 'VIDEO_STREAM_INFORMATION') return [];
  const { lens_id, gimbal_device_id } =
    name === 'CAMERA_INFORMATION' ? fields : { lens_id: 0, gimbal_device_id: 0 };
  const gimbal = devices.includes(gimbal_device_id) ? gimbal_device_id : 0;
  const device = fields.camera_device_id || Math.max(lens_id + 1, gimbal);
  return devices.filter((each) => each === device);
}

interface Stream {
  readonly id: number;
  readonly name: string;
  readonly isThermal: boolean;
  readonly isRunning: boolean;
  readonly address: DeviceAddress;
}

const flag_running = 1;
const flag_thermal = 2;

function readStream(fields: Messages['VIDEO_STREAM_INFORMATION']): Stream {
  const { stream_id: id, name, flags } = fields;
  return {
    id,
    name: name.trim() || texts.stream(id),
    isThermal: (flags & flag_thermal) !== 0,
    isRunning: (flags & flag_running) !== 0,
    address: rtspAddress(fields),
  };
}

function isWanted({ id, name, isThermal }: Stream, choice: StreamChoice = 'rgb'): boolean {
  if (choice === 'rgb' || choice === 'thermal') return isThermal === (choice === 'thermal');
  return String(id) === String(choice) || name.toLowerCase() === String(choice).toLowerCase();
}

const stream_rtsp = 0;
/** VIDEO_STREAM_TYPE: the camera sends to an address that is set at it, or waits for one player. */
const other_streams: ReadonlyMap<number, string> = new Map([
  [1, 'RTP over UDP'],
  [2, 'MPEG over TCP'],
  [3, 'MPEG-TS'],
]);
/** `camera` and `camera.local`: a name server beyond the network of the kit does not know them. */
const local_name = /^[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?(?:\.local)?$/iu;

/** The kit can fetch RTSP alone. */
function rtspAddress({ type, uri }: Messages['VIDEO_STREAM_INFORMATION']): DeviceAddress {
  if (type !== stream_rtsp) return { refused: texts.not_rtsp(other_streams.get(type) ?? `of type ${type}`) };
  const url = URL.parse(uri);
  if (!url) return { refused: address_texts.not_a_url };
  const scheme = url.protocol.slice(0, -1);
  if (scheme !== 'rtsp') return { refused: address_texts.other_scheme(scheme.slice(0, 16), 'rtsp') };
  if (url.hostname === '') return { refused: address_texts.no_host };
  // It must be a camera on the vehicle's network: not this machine, and no instructions for the media server. That resolves
  // names itself, later: what a name leads to now shows nothing.
  const host = url.hostname.replace(/^\[|\]$/gu, '');
  const found = deviceAddress(uri, { scheme: 'rtsp', host, port: 554, ports: 'reported' });
  if ('refused' in found) return found;
  if (isOwnHost(host)) return { refused: address_texts.on_gateway };
  const isLocal = isIP(host) !== 0 || (local_name.test(host) && isIP(plainHost(host)) === 0);
  return isLocal ? found : { refused: address_texts.is_name };
}

function makerOf({ name, fields }: Decoded): Maker | undefined {
  const has_maker =
    name === 'CAMERA_INFORMATION' ||
    name === 'GIMBAL_DEVICE_INFORMATION' ||
    name === 'COMPONENT_INFORMATION_BASIC';
  return has_maker ? { vendor: fields.vendor_name, model: fields.model_name } : undefined;
}

const command_request_message = 512;
/** Cameras of before 2020 know these alone (mavlink/qgroundcontrol#11571, mavlink/mavlink-camera-manager#354). */
const older_commands: ReadonlyMap<number, number> = new Map([
  [camera_information, 521],
  [video_stream_information, 2504],
]);

/** `id`: of one stream, 0 of all. */
function messageRequest(msgid: number, id: number, isRepeated: boolean): MessageRequest {
  const older = isRepeated ? older_commands.get(msgid) : undefined;
  if (older === undefined) return { command: command_request_message, param1: msgid, param2: id };
  return { command: older, param1: msgid === video_stream_information ? id : 1, param2: 1 };
}
