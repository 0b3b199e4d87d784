/** Publishes the feeds of a vehicle from its messages. */
import type { droneFeeds } from '../../../src/contract/drone-feeds.ts';
import type { AssetSink } from '../../../src/toolkit/driver/driver.ts';
import type { Contact } from './contact.ts';
import {
  attitudeFeed,
  batteryFeed,
  batteryReading,
  clearanceFeed,
  depthFeed,
  failedSensors,
  rcFeed,
  terrainFeed,
  gpsFeed,
  gpsRawFeed,
  systemBattery,
  vfrHudFeed,
  fenceFeed,
  homeFeed,
  vibrationFeed,
  windFeed,
  windVectorFeed,
} from './feeds.ts';
import {
  failuresOf,
  highLatencyBattery,
  highLatencyEstimator,
  highLatencyPosition,
  highLatencySpeeds,
} from './high-latency.ts';
import type { Decoded, Messages } from '../wire/messages.ts';
import {
  isFenceOff,
  isPositionValid,
  position_fresh_ms,
  receiverOf,
  situationOf,
  type Situation,
} from './situation.ts';

export type DroneSink = AssetSink<typeof droneFeeds>;
export type Charge = Pick<Reading, 'remaining_pct' | 'voltage'>;
type Reading = NonNullable<ReturnType<typeof batteryReading>>;

const status_fresh_ms = 5_000;
const home_fresh_ms = 30_000;
/** A battery is no longer listed after this silence. */
const battery_fresh_ms = 20_000;
const batteries_max = 16;
const attitude_known = 1;
const system_states =
  'UNINIT BOOT CALIBRATING STANDBY ACTIVE CRITICAL EMERGENCY POWEROFF FLIGHT_TERMINATION'.split(' ');

interface Moment {
  readonly now_ms: number;
  /** Alarms that are published with the status. */
  readonly alarms: readonly string[];
}

/** Publishes the feeds of one vehicle; keeps the latest reading of each battery. */
export class Publishing {
  readonly #sink: DroneSink;
  readonly #batteries = new Map<number, Reading>();
  /** When each was reported. */
  readonly #reported_ms = new Map<number, number>();
  #charge: Charge | undefined;
  /** Of a fence that is breached. */
  #breach: ReturnType<typeof fenceFeed> | undefined;
  /** When it was last published. */
  #position_ms = Number.NEGATIVE_INFINITY;
  readonly #flight = new FlightTime();

  constructor(sink: DroneSink) {
    this.#sink = sink;
  }

  /** The latest published state of the battery; undefined before the first. */
  get charge(): Charge | undefined {
    return this.#charge;
  }

  receive(message: Decoded, contact: Contact, now_ms: number): void {
    const { name, fields } = message;
    if (name === 'GLOBAL_POSITION_INT') this.#position(fields, contact, now_ms);
    else if (name === 'GPS_RAW_INT' || name === 'GPS2_RAW') this.#receivers(name, contact, now_ms);
    else if (name === 'ATTITUDE') this.#sink.publish('attitude', attitudeFeed(fields));
    else if (name === 'VFR_HUD') this.#sink.publish('vfr_hud', vfrHudFeed(fields));
    else if (name === 'BATTERY_STATUS') this.#battery(fields, contact, now_ms);
    else if (name === 'SYS_STATUS') this.#system(fields, contact, now_ms);
    else if (name === 'RC_CHANNELS' || name === 'RC_CHANNELS_RAW')
      this.#sink.publish('rc', rcFeed(fields, contact.autopilot));
    else this.#more(message, contact, now_ms);
  }

  #more({ name, fields }: Decoded, { latest }: Contact, now_ms: number): void {
    if (name === 'VIBRATION') this.#sink.publish('vibration', vibrationFeed(fields));
    else if (name === 'FENCE_STATUS') this.#publishFence(fenceFeed(fields));
    else if (name === 'HOME_POSITION') {
      const home = homeFeed(fields, receiverOf(latest, now_ms));
      if (home) this.#sink.publish('home', home);
    } else if (name === 'TERRAIN_REPORT') this.#terrain(terrainFeed(fields));
    else if (name === 'ALTITUDE') this.#terrain(clearanceFeed(fields));
    else if (name === 'WIND') this.#wind(windFeed(fields));
    else if (name === 'WIND_COV') this.#wind(windVectorFeed(fields));
  }

  #publishFence(fence: ReturnType<typeof fenceFeed>): void {
    this.#breach = fence.breached === true ? fence : undefined;
    this.#sink.publish('fence', fence);
  }

  #system(status: Messages['SYS_STATUS'], contact: Contact, now_ms: number): void {
    this.#systemBattery(status, now_ms);
    if (this.#breach && isFenceOff(contact, now_ms))
      this.#publishFence({ ...this.#breach, breached: false, breach_type: 'none' });
  }

  #terrain(terrain: ReturnType<typeof terrainFeed>): void {
    if (terrain) this.#sink.publish('terrain', terrain);
  }

  #wind(wind: ReturnType<typeof windFeed>): void {
    if (wind) this.#sink.publish('wind', wind);
  }

  /** Publishes what a vehicle reports over a satellite. */
  highLatency(report: Messages['HIGH_LATENCY2'], contact: Contact, { now_ms, alarms }: Moment): void {
    const position = highLatencyPosition(report);
    if (position) {
      this.#sink.publish('gps', position);
      this.#sink.setPosition({ lat: position.lat, lon: position.lon });
    }
    const battery = highLatencyBattery(report);
    if (battery) this.#publishBattery(battery);
    this.#sink.publish('vfr_hud', highLatencySpeeds(report, contact.autopilot));
    const { armed, mode } = situationOf(contact, now_ms);
    this.#sink.publish('sys_status', {
      armed,
      flight_mode: mode,
      ekf_ok: highLatencyEstimator(report),
      pre_arm_check: null,
      high_latency: true,
      failures: [...failuresOf(report)],
      ...(alarms.length > 0 ? { alarms: [...alarms] } : {}),
    });
  }

  #position(position: Messages['GLOBAL_POSITION_INT'], contact: Contact, now_ms: number): void {
    const depth = contact.kind === 'sub' ? depthFeed(position) : undefined;
    if (depth) this.#sink.publish('depth', depth);
    if (!isPositionValid(contact, now_ms)) return;
    const { latest, autopilot } = contact;
    const flags = latest.fresh('EKF_STATUS_REPORT', status_fresh_ms, now_ms)?.flags;
    const message = gpsFeed(position, {
      gps: receiverOf(latest, now_ms),
      home: latest.fresh('HOME_POSITION', home_fresh_ms, now_ms),
      kind: contact.kind,
      isAligned: autopilot !== 'ardupilot' || flags === undefined || (flags & attitude_known) !== 0,
    });
    if (!message) return;
    this.#sink.publish('gps', message);
    this.#position_ms = now_ms;
    const { lat, lon, alt_m } = message;
    this.#sink.setPosition(alt_m === null ? { lat, lon } : { lat, lon, alt_m });
  }

  /** Where there is no position of the estimator, that of the receiver is the place on the map. */
  #receivers(name: 'GPS_RAW_INT' | 'GPS2_RAW', { latest }: Contact, now_ms: number): void {
    const one = latest.fresh('GPS_RAW_INT', status_fresh_ms, now_ms);
    const two = latest.fresh('GPS2_RAW', status_fresh_ms, now_ms);
    // The first one has both published.
    if (name === 'GPS2_RAW' && one) return;
    const raw = one ? gpsRawFeed(one, two) : two && gpsRawFeed(two);
    if (!raw) return;
    this.#sink.publish('gps_raw', raw);
    const { lat, lon, alt_m } = raw;
    if (lat === null || lon === null || now_ms - this.#position_ms < position_fresh_ms) return;
    this.#sink.setPosition(alt_m === null ? { lat, lon } : { lat, lon, alt_m });
  }

  #battery(status: Messages['BATTERY_STATUS'], contact: Contact, now_ms: number): void {
    const reading = batteryReading(status);
    const isKnown = this.#batteries.has(status.id);
    if (!reading || (!isKnown && this.#batteries.size >= batteries_max)) return;
    this.#batteries.set(status.id, reading);
    this.#reported_ms.set(status.id, now_ms);
    this.#dropStaleBatteries(now_ms);
    const system = contact.latest.fresh('SYS_STATUS', status_fresh_ms, now_ms);
    const message = batteryFeed(this.#batteries, system && systemBattery(system));
    if (message) this.#publishBattery(message);
  }

  /** Used only for vehicles that do not report each battery. */
  #systemBattery(status: Messages['SYS_STATUS'], now_ms: number): void {
    this.#dropStaleBatteries(now_ms);
    const message = this.#batteries.size > 0 ? undefined : systemBattery(status);
    if (message) this.#publishBattery(message);
  }

  #publishBattery(message: NonNullable<ReturnType<typeof batteryFeed>>): void {
    this.#charge = message;
    this.#sink.publish('battery', message);
  }

  #dropStaleBatteries(now_ms: number): void {
    for (const [id, at_ms] of this.#reported_ms) {
      if (now_ms - at_ms <= battery_fresh_ms) continue;
      this.#batteries.delete(id);
      this.#reported_ms.delete(id);
    }
  }

  /** Publishes the status, with each heartbeat. */
  status({ system_status }: Messages['HEARTBEAT'], contact: Contact, { now_ms, alarms }: Moment): void {
    const situation = situationOf(contact, now_ms);
    const { armed, mode, pre_arm_check, pre_arm_reasons, estimator } = situation;
    const sensors = contact.latest.fresh('SYS_STATUS', status_fresh_ms, now_ms);
    const flight_time_s = this.#flight.seconds(situation, contact, now_ms);
    if (flight_time_s === undefined && situation.airborne === true) contact.streams?.request('flight');
    this.#sink.publish('sys_status', {
      armed,
      flight_mode: mode,
      ekf_ok: estimator?.ok ?? null,
      pre_arm_check,
      system_status: system_states[system_status] ?? null,
      pre_arm_reasons: [...pre_arm_reasons],
      ekf_reasons: [...(estimator?.reasons ?? [])],
      ...(sensors && { failures: [...failedSensors(sensors)] }),
      ...(flight_time_s !== undefined && { flight_time_s }),
      ...(alarms.length > 0 ? { alarms: [...alarms] } : {}),
    });
  }
}

/** How long a vehicle has been in the air, as far as its take-off was seen, or is reported. */
class FlightTime {
  #airborne: boolean | null = null;
  #boots = 0;
  #begun_ms: number | undefined;
  #ended_ms: number | undefined;

  seconds({ airborne }: Situation, contact: Contact, now_ms: number): number | undefined {
    this.#note(airborne, contact.boots, now_ms);
    if (airborne === true) this.#begun_ms ??= takeoffOf_ms(contact, now_ms);
    if (this.#begun_ms === undefined) return undefined;
    return Math.round(((this.#ended_ms ?? now_ms) - this.#begun_ms) / 1_000);
  }

  #note(airborne: boolean | null, boots: number, now_ms: number): void {
    if (boots !== this.#boots || (airborne === true && this.#airborne !== true)) {
      this.#begun_ms = airborne === true && this.#airborne === false ? now_ms : undefined;
      this.#ended_ms = undefined;
    }
    if (airborne === false && this.#airborne === true) this.#ended_ms = now_ms;
    this.#boots = boots;
    this.#airborne = airborne ?? this.#airborne;
  }
}

/** When it took off, by its own report. The time is since its start, whatever the name of the field says (mavlink#2067); 0: unknown. */
function takeoffOf_ms({ latest, booted_at_ms }: Contact, now_ms: number): number | undefined {
  const { takeoff_time_utc = 0 } = latest.last('FLIGHT_INFORMATION') ?? {};
  if (takeoff_time_utc === 0 || booted_at_ms === undefined) return undefined;
  const begun_ms = booted_at_ms + takeoff_time_utc / 1_000;
  return begun_ms <= now_ms ? begun_ms : undefined;
}
