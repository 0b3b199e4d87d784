/** A camera, a gimbal or another component of a vehicle: a child of the vehicle's asset. */
import { isIP } from 'node:net';
import { isOwnHost } from '../../../src/toolkit/device/own-host.ts';
import { deviceAddress } from '../../../src/toolkit/driver/device-address.ts';
import type { AssetDescription } from '../../../src/toolkit/driver/driver.ts';
import type { OnRefused } from '../../../src/toolkit/driver/refused-addresses.ts';
import { texts as address_texts } from '../../../src/toolkit/driver/texts.ts';
import { silenceSince } from '../../../src/platform/stalls.ts';
import { changes_rate, parts_appearing_rate } from './newcomers.ts';
import { TokenBucket } from '../../../src/platform/token-bucket.ts';
import type { Decoded, Messages } from '../wire/messages.ts';
import { senderOf } from '../reports/kind.ts';
import type { DroneSink } from './publishing.ts';
import { texts } from './texts.ts';
import type { Vehicle } from './vehicle.ts';

export interface PartParts {
  readonly parent_key: string;
  readonly parent_name: string;
  readonly compid: number;
  readonly part: string;
  readonly type: 'camera' | 'sensor';
  /** Where it was first received from; an address of its vehicle if omitted. */
  readonly source?: string;
  readonly now_ms: number;
  readonly offline_after_ms: number;
  readonly announce: (about: AssetDescription) => DroneSink;
  /** Requests one message from the component. */
  readonly request: (msgid: number) => void;
  /** The camera reported a stream that is not used. */
  readonly onRefused: OnRefused;
}

interface Maker {
  readonly vendor: string;
  readonly model: string;
}

const camera_information = 259;
const gimbal_device_information = 283;
const video_stream_information = 269;
const component_information_basic = 396;
const requests_max = 3;
const request_pause_ms = 2_000;

export class Part {
  last_ms: number;
  #source: string;
  readonly #parts: PartParts;
  readonly #sink: DroneSink;
  #online = true;
  #maker: Maker | undefined;
  #rtsp_url: string | undefined;
  readonly #changed = new TokenBucket(changes_rate);
  #requests = 0;
  #requested_ms = Number.NEGATIVE_INFINITY;

  constructor(parts: PartParts) {
    this.#parts = parts;
    this.last_ms = parts.now_ms;
    this.#source = parts.source ?? own_source;
    this.#sink = parts.announce(this.#describe());
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

  /** Whether a message from there counts: while it is received from one source, only its vehicle may speak for it too. */
  hears(source: string, now_ms: number): boolean {
    const isOther = source !== this.#source && source !== own_source;
    if (isOther && silenceSince(this.last_ms, now_ms) < this.#parts.offline_after_ms) return false;
    this.#source = source;
    return true;
  }

  receive(message: Decoded, now_ms: number): void {
    this.last_ms = now_ms;
    if (!this.#online) {
      this.#online = true;
      this.#sink.setOnline(true);
    }
    const maker = makerOf(message) ?? this.#maker;
    const rtsp_url = this.#rtsp_url ?? rtspUrlOf(message, this.#parts.onRefused);
    const isKnown = maker?.vendor === this.#maker?.vendor && maker?.model === this.#maker?.model;
    if ((isKnown && rtsp_url === this.#rtsp_url) || !this.#changed.take(now_ms)) return;
    this.#maker = maker;
    this.#rtsp_url = rtsp_url;
    this.#parts.announce(this.#describe());
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
    const isComplete =
      this.#maker !== undefined && (this.#rtsp_url !== undefined || this.#parts.type !== 'camera');
    if (
      isComplete ||
      this.#requests >= requests_max ||
      !this.#online ||
      now_ms - this.#requested_ms < request_pause_ms
    )
      return;
    this.#requests += 1;
    this.#requested_ms = now_ms;
    this.#parts.request(this.#informative);
    if (this.#parts.type === 'camera') this.#parts.request(video_stream_information);
  }

  /** The message in which a component of this kind identifies itself. */
  get #informative(): number {
    if (this.#parts.type === 'camera') return camera_information;
    return this.#parts.part === 'gimbal' ? gimbal_device_information : component_information_basic;
  }

  #describe(): AssetDescription {
    const { parent_key, parent_name, compid, part, type } = this.#parts;
    return {
      asset_key: `${parent_key}:component-${compid}`,
      name: `${parent_name} ${part}`,
      type,
      protocol: 'mavlink',
      parent_key,
      vendor: this.#maker?.vendor || null,
      model: this.#maker?.model || null,
      ...(this.#rtsp_url === undefined ? {} : { rtsp_url: this.#rtsp_url }),
    };
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
  readonly now_ms: number;
}

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

  receive(message: Decoded, from: FromPart): void {
    const { vehicle, source, compid, now_ms } = from;
    const key = `${vehicle.asset_key}.${compid}`;
    const known = this.#all.get(key);
    if (known) {
      if (known.hears(source, now_ms)) known.receive(message, now_ms);
      return;
    }
    const sender = message.name === 'HEARTBEAT' ? senderOf(message.fields) : undefined;
    if (sender?.is !== 'part') return;
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
    for (const [key, part] of this.#all) if (part.parent_key === asset_key) this.#remove(key, part);
  }

  #part(
    { part, asset: type }: { readonly part: string; readonly asset: 'camera' | 'sensor' },
    { vehicle, source, sysid, compid, now_ms }: FromPart,
  ): Part {
    const { asset_key: parent_key, name: parent_name } = vehicle;
    const { announce, offline_after_ms, onRefused, request } = this.#needs;
    return new Part({
      parent_key,
      parent_name,
      compid,
      part,
      type,
      source,
      now_ms,
      offline_after_ms,
      announce,
      request: (msgid) => request(requestMessage({ sysid, compid }, msgid), vehicle),
      onRefused: onRefused(parent_key),
    });
  }

  /** The limit that one more would exceed; an offline one of the same kind is removed for it. */
  #limit({ vehicle, source }: FromPart): number | undefined {
    const isOwn = source === own_source;
    const max = isOwn ? own_parts_max : foreign_parts_max;
    const same = [...this.#all].filter(
      ([, part]) => part.parent_key === vehicle.asset_key && (part.source === own_source) === isOwn,
    );
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

const stream_rtsp = 0;

/** Returns the first RTSP stream of the camera; the kit cannot fetch other kinds of streams. */
function rtspUrlOf({ name, fields }: Decoded, onRefused: OnRefused): string | undefined {
  if (name !== 'VIDEO_STREAM_INFORMATION' || fields.type !== stream_rtsp) return undefined;
  const url = URL.parse(fields.uri);
  if (url?.protocol !== 'rtsp:' || url.hostname === '') return undefined;
  // It must be a camera on the vehicle's network: not this machine, and no instructions for the media server. That resolves
  // names itself, later: what a name leads to now shows nothing.
  const host = plainHost(url);
  const found = deviceAddress(fields.uri, { scheme: 'rtsp', host, port: 554, ports: 'reported' });
  const fault = isOwnHost(host)
    ? address_texts.on_gateway
    : isIP(host) === 0
      ? address_texts.is_name
      : undefined;
  if ('url' in found && fault === undefined) return found.url;
  onRefused(fields.uri, 'refused' in found ? found.refused : (fault ?? address_texts.not_a_url));
  return undefined;
}

function plainHost({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/gu, '');
}

function makerOf({ name, fields }: Decoded): Maker | undefined {
  const has_maker =
    name === 'CAMERA_INFORMATION' ||
    name === 'GIMBAL_DEVICE_INFORMATION' ||
    name === 'COMPONENT_INFORMATION_BASIC';
  return has_maker ? { vendor: fields.vendor_name, model: fields.model_name } : undefined;
}

const command_request_message = 512;

/** Returns the request for one message of a component. */
function requestMessage(
  { sysid, compid }: { readonly sysid: number; readonly compid: number },
  msgid: number,
): Messages['COMMAND_LONG'] {
  return {
    target_system: sysid,
    target_component: compid,
    command: command_request_message,
    confirmation: 0,
    param1: msgid,
    param2: 0,
    param3: 0,
    param4: 0,
    param5: 0,
    param6: 0,
    param7: 0,
  };
}
