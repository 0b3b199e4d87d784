/** A camera, a gimbal or another component that is found on a vehicle: an asset below the vehicle's. */
import type { AssetDescription } from '../../src/driver/driver.ts';
import type { Decoded } from './messages.ts';
import type { DroneSink } from './publishing.ts';

export interface PartParts {
  readonly parent_key: string;
  readonly parent_name: string;
  readonly compid: number;
  readonly part: string;
  readonly type: 'camera' | 'sensor';
  readonly now_ms: number;
  readonly offline_after_ms: number;
  readonly announce: (about: AssetDescription) => DroneSink;
  /** Asks the component for one message. */
  readonly ask: (msgid: number) => void;
}

interface Maker {
  readonly vendor: string;
  readonly model: string;
}

const camera_information = 259;
const gimbal_device_information = 283;
const video_stream_information = 269;
const component_information_basic = 396;
const asks_max = 3;
const ask_pause_ms = 2_000;

export class Part {
  last_ms: number;
  readonly #parts: PartParts;
  readonly #sink: DroneSink;
  #online = true;
  #maker: Maker | undefined;
  #rtsp_url: string | undefined;
  #asks = 0;
  #asked_ms = Number.NEGATIVE_INFINITY;

  constructor(parts: PartParts) {
    this.#parts = parts;
    this.last_ms = parts.now_ms;
    this.#sink = parts.announce(this.#describe());
  }

  take(message: Decoded, now_ms: number): void {
    this.last_ms = now_ms;
    if (!this.#online) {
      this.#online = true;
      this.#sink.setOnline(true);
    }
    const maker = makerOf(message) ?? this.#maker;
    const rtsp_url = this.#rtsp_url ?? rtspUrlOf(message);
    const is_known = maker?.vendor === this.#maker?.vendor && maker?.model === this.#maker?.model;
    if (is_known && rtsp_url === this.#rtsp_url) return;
    this.#maker = maker;
    this.#rtsp_url = rtsp_url;
    this.#parts.announce(this.#describe());
  }

  tick(now_ms: number): void {
    const silence_ms = now_ms - this.last_ms;
    if (this.#online && silence_ms >= this.#parts.offline_after_ms) {
      this.#online = false;
      this.#sink.setOnline(false, `nothing was heard of it for ${Math.round(silence_ms / 1_000)} s`);
    }
    const is_told =
      this.#maker !== undefined && (this.#rtsp_url !== undefined || this.#parts.type !== 'camera');
    if (is_told || this.#asks >= asks_max || !this.#online || now_ms - this.#asked_ms < ask_pause_ms) return;
    this.#asks += 1;
    this.#asked_ms = now_ms;
    this.#parts.ask(this.#informative);
    if (this.#parts.type === 'camera') this.#parts.ask(video_stream_information);
  }

  /** The message in which a component of this kind says what it is. */
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

/** The first stream that the camera offers over RTSP; other kinds of streams nobody here can fetch. */
function rtspUrlOf({ name, fields }: Decoded): string | undefined {
  if (name !== 'VIDEO_STREAM_INFORMATION' || fields.type !== stream_rtsp) return undefined;
  return URL.parse(fields.uri)?.protocol === 'rtsp:' ? fields.uri : undefined;
}

function makerOf({ name, fields }: Decoded): Maker | undefined {
  const is_telling =
    name === 'CAMERA_INFORMATION' ||
    name === 'GIMBAL_DEVICE_INFORMATION' ||
    name === 'COMPONENT_INFORMATION_BASIC';
  return is_telling ? { vendor: fields.vendor_name, model: fields.model_name } : undefined;
}
