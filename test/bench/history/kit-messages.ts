/** What a kit with two drones, a radio and a camera sends: one message a second, values that drift as those of devices do. */
import { assetId } from '../../../src/contract/identity.ts';
import type { JsonObject } from '../../../src/contract/json.ts';
import { channels } from '../../../src/contract/topics.ts';
import type { HistoryMessage } from '../../../src/cloud/history/message.ts';
import { type Random, seededRandom } from '../../support/random.ts';

export const message_every_ms = 1_000;
const epoch = 17;
const drones = 2;
/** An event that comes about 29 times a day. */
export const alarm_type = 'tamper';
const alarm_every = 3_000;
/** Of 100 messages: positions. The rest are batteries, attitudes, radio, speeds, events and telemetry. */
const positions_of_100 = 40;

interface Flight {
  lat: number;
  lon: number;
  alt_m: number;
  speed: number;
  heading: number;
  voltage: number;
}

interface Said {
  readonly channel: string;
  readonly data: JsonObject;
}

export class KitMessages {
  readonly kit_id: string;
  readonly drones: readonly string[];
  readonly #radio: string;
  readonly #camera: string;
  readonly #random: Random;
  readonly #flights: readonly Flight[];
  readonly #start_ms: number;
  #seq = 0;
  #rssi_dbm = -60;
  #cpu_pct = 20;
  #latency_ms = 40;
  #isMoving = false;

  constructor(kit_id: string, start_ms: number, seed = 1) {
    this.kit_id = kit_id;
    this.#start_ms = start_ms;
    this.#random = seededRandom(seed);
    this.drones = Array.from({ length: drones }, (_, n) => assetId(kit_id, `drone-${n}`));
    this.#radio = assetId(kit_id, 'radio');
    this.#camera = assetId(kit_id, 'camera');
    this.#flights = this.drones.map(() => ({
      lat: 47.3,
      lon: 8.5,
      alt_m: 500,
      speed: 8,
      heading: 90,
      voltage: 25.2,
    }));
  }

  next(): HistoryMessage {
    const time_ms = this.#start_ms + this.#seq * message_every_ms + this.#random.below(300);
    const { channel, data } = this.#said(this.#seq, time_ms);
    this.#seq += 1;
    return { channel, epoch, seq: this.#seq, time_ms, unsynced: false, data: JSON.stringify(data) };
  }

  /** The next messages. */
  take(count: number): HistoryMessage[] {
    return Array.from({ length: count }, () => this.next());
  }

  #said(index: number, time_ms: number): Said {
    const place = (index * 37) % 100;
    const drone = index % drones;
    if (place < positions_of_100) return this.#position(drone);
    if (place < 52) return this.#battery(drone);
    if (place < 62) return this.#attitude(drone);
    if (place < 72) return this.#radioLink(time_ms);
    if (place < 82) return this.#speeds(drone);
    if (place < 85) return this.#event(place, time_ms);
    return this.#telemetry(place);
  }

  #position(drone: number): Said {
    const flight = this.#flight(drone);
    flight.heading = (flight.heading + this.#drift(10) + 360) % 360;
    flight.speed = Math.max(0, flight.speed + this.#drift(1));
    flight.lat += (Math.cos((flight.heading * Math.PI) / 180) * flight.speed * 5) / 111_000;
    flight.lon += (Math.sin((flight.heading * Math.PI) / 180) * flight.speed * 5) / 75_000;
    flight.alt_m += this.#drift(1);
    const { lat, lon, alt_m, speed, heading } = flight;
    const data = {
      lat: round(lat, 7),
      lon: round(lon, 7),
      alt_m: round(alt_m, 1),
      ground_speed: round(speed, 2),
      heading: round(heading, 1),
      alt_amsl_m: round(alt_m - 47.6, 1),
      relative_alt_m: round(alt_m - 450, 1),
    };
    return { channel: channels.feed(this.#droneId(drone), 'gps'), data };
  }

  #battery(drone: number): Said {
    const flight = this.#flight(drone);
    flight.voltage = flight.voltage < 21 ? 25.2 : flight.voltage - this.#random.below(20) / 1e4;
    const remaining_pct = Math.round(((flight.voltage - 21) / 4.2) * 100);
    const data = { voltage: round(flight.voltage, 3), current: round(12 + this.#drift(3), 2), remaining_pct };
    return { channel: channels.feed(this.#droneId(drone), 'battery'), data };
  }

  #attitude(drone: number): Said {
    const data = {
      roll: round(this.#drift(20), 1),
      pitch: round(this.#drift(20), 1),
      yaw: round(this.#drift(360), 1),
    };
    return { channel: channels.feed(this.#droneId(drone), 'attitude'), data };
  }

  #speeds(drone: number): Said {
    const { speed, heading } = this.#flight(drone);
    const data = {
      airspeed: round(speed + this.#drift(1), 2),
      groundspeed: round(speed, 2),
      climb_mps: round(this.#drift(2), 2),
      throttle_pct: Math.round(50 + this.#drift(10)),
      heading: Math.round(heading),
    };
    return { channel: channels.feed(this.#droneId(drone), 'vfr_hud'), data };
  }

  #radioLink(time_ms: number): Said {
    this.#rssi_dbm = Math.min(-40, Math.max(-90, this.#rssi_dbm + this.#drift(4)));
    const rssi = Math.round(this.#rssi_dbm);
    const data = {
      rssi,
      remote_rssi: null,
      noise: -95,
      rx_errors: 0,
      snr_db: rssi + 95,
      peer: '00:11:22:33:44:55',
      timestamp: new Date(time_ms).toISOString(),
    };
    return { channel: channels.feed(this.#radio, 'radio'), data };
  }

  /** Two of three are about motion; the third reports that the camera is there, or rarely an alarm. */
  #event(place: number, time_ms: number): Said {
    if (place === 84 && this.#seq % alarm_every < 100)
      return { channel: channels.event(this.#camera, alarm_type), data: { active: true } };
    if (place === 84)
      return {
        channel: channels.event(this.#camera, 'asset_status'),
        data: { status: 'online', reason: null },
      };
    this.#isMoving = !this.#isMoving;
    const data = { detected: this.#isMoving, timestamp: new Date(time_ms).toISOString() };
    return { channel: channels.event(this.#camera, 'motion'), data };
  }

  #telemetry(place: number): Said {
    this.#cpu_pct = Math.min(99, Math.max(1, this.#cpu_pct + this.#drift(5)));
    this.#latency_ms = Math.max(5, this.#latency_ms + this.#drift(6));
    if (place % 2 === 0) {
      const [cpu_pct, mem_pct] = [round(this.#cpu_pct, 1), round(43 + this.#drift(1), 1)];
      const gateway = { name: 'gw-7', model: 'MX-1', cpu_pct, mem_pct, uptime_s: this.#seq };
      return { channel: channels.telemetry, data: { gateway } };
    }
    const wan = {
      name: 'wwan0',
      type: 'cellular',
      status: 'online',
      rx_bps: Math.round(1e6 + this.#drift(1e6)),
      tx_bps: Math.round(5e5 + this.#drift(2e5)),
      latency_ms: round(this.#latency_ms, 1),
      jitter_ms: round(3 + this.#drift(2), 1),
      packet_loss_pct: 0,
    };
    return { channel: channels.telemetry, data: { wans: [wan] } };
  }

  #flight(drone: number): Flight {
    const flight = this.#flights[drone];
    if (!flight) throw new RangeError(`there is no drone ${drone}`);
    return flight;
  }

  #droneId(drone: number): string {
    return this.drones[drone] ?? '';
  }

  /** Between minus and plus half of the span. */
  #drift(span: number): number {
    return (this.#random.below(1_000_000) / 1e6 - 0.5) * span;
  }
}

function round(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}
