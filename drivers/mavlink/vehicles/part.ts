/** A camera, a gimbal or another component of a vehicle: a child of the vehicle's asset. */
import { isOwnHost } from '../../../src/device/own-host.ts';
import { deviceAddress } from '../../../src/driver/device-address.ts';
import type { AssetDescription } from '../../../src/driver/driver.ts';
import type { OnRefused } from '../../../src/driver/refused-addresses.ts';
import { texts as address_texts } from '../../../src/driver/texts.ts';
import { silenceSince } from '../../../src/platform/stalls.ts';
import type { Decoded, Messages } from '../wire/messages.ts';
import type { DroneSink } from './publishing.ts';
import { texts } from './texts.ts';

export interface PartParts {
  readonly parent_key: string;
  readonly parent_name: string;
  readonly compid: number;
  readonly part: string;
  readonly type: 'camera' | 'sensor';
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
  readonly #parts: PartParts;
  readonly #sink: DroneSink;
  #online = true;
  #maker: Maker | undefined;
  #rtsp_url: string | undefined;
  #requests = 0;
  #requested_ms = Number.NEGATIVE_INFINITY;

  constructor(parts: PartParts) {
    this.#parts = parts;
    this.last_ms = parts.now_ms;
    this.#sink = parts.announce(this.#describe());
  }

  receive(message: Decoded, now_ms: number): void {
    this.last_ms = now_ms;
    if (!this.#online) {
      this.#online = true;
      this.#sink.setOnline(true);
    }
    const maker = makerOf(message) ?? this.#maker;
    const rtsp_url = this.#rtsp_url ?? rtspUrlOf(message, this.#parts.onRefused);
    const is_known = maker?.vendor === this.#maker?.vendor && maker?.model === this.#maker?.model;
    if (is_known && rtsp_url === this.#rtsp_url) return;
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
    const is_complete =
      this.#maker !== undefined && (this.#rtsp_url !== undefined || this.#parts.type !== 'camera');
    if (
      is_complete ||
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

const stream_rtsp = 0;

/** Returns the first RTSP stream of the camera; the kit cannot fetch other kinds of streams. */
function rtspUrlOf({ name, fields }: Decoded, onRefused: OnRefused): string | undefined {
  if (name !== 'VIDEO_STREAM_INFORMATION' || fields.type !== stream_rtsp) return undefined;
  const url = URL.parse(fields.uri);
  if (url?.protocol !== 'rtsp:' || url.hostname === '') return undefined;
  // It must be a camera on the vehicle's network: not this machine, and no instructions for the media server.
  const found = deviceAddress(fields.uri, {
    scheme: 'rtsp',
    host: plainHost(url),
    port: 554,
    ports: 'reported',
  });
  if ('url' in found && !isOwnHost(plainHost(url))) return found.url;
  onRefused(fields.uri, 'refused' in found ? found.refused : address_texts.on_gateway);
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
export function requestMessage(
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
