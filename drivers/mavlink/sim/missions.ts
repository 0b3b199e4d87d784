/** What a simulated vehicle has stored, and its side of the mission protocol, as the sources of both autopilots describe it. */
import { crc32 } from 'node:zlib';
import type { Decoded, Messages } from '../wire/messages.ts';
import type { Place } from '../vehicles/geo.ts';
import type { Home, Target } from './flight.ts';

type Item = Messages['MISSION_ITEM_INT'];
export type MissionMessage = Extract<
  Decoded,
  {
    readonly name:
      | 'MISSION_ACK'
      | 'MISSION_CLEAR_ALL'
      | 'MISSION_COUNT'
      | 'MISSION_ITEM_INT'
      | 'MISSION_REQUEST'
      | 'MISSION_REQUEST_INT'
      | 'MISSION_REQUEST_LIST'
      | 'MISSION_SET_CURRENT';
  }
>;
type Reply = 'MISSION_ACK' | 'MISSION_COUNT' | 'MISSION_ITEM_INT' | 'MISSION_REQUEST' | 'MISSION_REQUEST_INT';

export interface Station {
  readonly sysid: number;
  readonly compid: number;
}

export interface SimMissionsParts {
  readonly autopilot: 'ardupilot' | 'px4';
  readonly home: Home;
  readonly reply: <K extends Reply>(name: K, fields: Messages[K]) => void;
  /** Sends a text. */
  readonly say?: (text: string, severity: number) => void;
}

/** What a PX4 is sending to a station, which no other station may interrupt. */
interface Sending {
  readonly type: number;
  readonly to: Station;
  readonly count: number;
  /** Number of items that were sent. */
  sent: number;
  asked_ms: number;
}

interface Receiving {
  readonly type: number;
  readonly count: number;
  readonly from: Station;
  readonly items: Item[];
  asked_ms: number;
  received_ms: number;
}

const accepted = 0;
const error = 1;
const no_space = 4;
const invalid_param1 = 6;
const invalid_sequence = 13;
const refused = 14;
const cancelled = 15;
const capacity = 724;
const severity_critical = 2;
const severity_info = 6;
const no_mission_total = 65_535;
const type_mission = 0;
const type_rally = 2;
const type_all = 255;
const command_waypoint = 16;
const takeoff = 22;
/** Commands below this one have a place, with exceptions that do not matter here. */
const nav_last = 95;
const return_home = 20;
const delay = 93;
const frame_mission = 2;
/** How long each waits for an item, and after which time it asks again. */
const patience = {
  ardupilot: { again_ms: 1_000, end_ms: 8_000 },
  px4: { again_ms: 250, end_ms: 5_000 },
} as const;

export function isMissionMessage(message: Decoded): message is MissionMessage {
  const { name } = message;
  return name.startsWith('MISSION_') && name !== 'MISSION_CURRENT';
}

export class SimMissions {
  /** By MAV_MISSION_TYPE. A reboot does not lose them. */
  readonly stored: Item[][] = [[], [], []];
  /** Item that it flies to. */
  current = 0;
  isComplete = false;
  protected receiving: Receiving | undefined;
  #sending: Sending | undefined;
  readonly #parts: SimMissionsParts;

  constructor(parts: SimMissionsParts) {
    this.#parts = parts;
    this.current = this.first;
  }

  /** Item 0 of an ArduPilot is its home. */
  get first(): number {
    return this.#parts.autopilot === 'ardupilot' ? 1 : 0;
  }

  /** Where the current item leads a vehicle that is here; undefined without a mission or at its end. */
  target({ lat, lon }: Place): Target | undefined {
    const item = this.stored[type_mission]?.[this.current];
    if (!item || this.isComplete) return undefined;
    const { home } = this.#parts;
    const height_m = item.frame === 0 || item.frame === 5 ? item.z - home.alt_amsl_m : item.z;
    const isHere = item.x === 0 && item.y === 0;
    return isHere ? { lat, lon, height_m } : { lat: item.x / 1e7, lon: item.y / 1e7, height_m };
  }

  /** The current item is reached. */
  next(): void {
    const items = this.stored[type_mission] ?? [];
    let next = this.current + 1;
    while (next < items.length && !isFlownTo(items[next])) next += 1;
    if (next >= items.length) this.isComplete = true;
    else this.current = next;
  }

  report(is_flying: boolean): Messages['MISSION_CURRENT'] {
    const count = Math.max(0, (this.stored[type_mission]?.length ?? 0) - this.first);
    const is_begun = this.current > this.first;
    const running = is_flying ? 3 : is_begun ? 4 : 2;
    const mission_state = count === 0 ? 1 : this.isComplete ? 5 : running;
    return {
      seq: this.current,
      total: count === 0 ? no_mission_total : count,
      mission_state,
      mission_mode: is_flying ? 1 : 2,
      mission_id: 0,
      fence_id: 0,
      rally_points_id: 0,
    };
  }

  restart(): void {
    this.receiving = undefined;
    this.#sending = undefined;
    this.current = this.first;
    this.isComplete = false;
  }

  handle(message: MissionMessage, from: Station, now_ms: number): void {
    const { name, fields } = message;
    if (name === 'MISSION_SET_CURRENT') this.#setCurrent(fields.seq);
    else if (name === 'MISSION_ACK') this.#end(fields.type, from);
    else if (!this.#isBusy(message, from)) this.#transfer(message, from, now_ms);
  }

  /** An ArduPilot does not end an upload on a MISSION_ACK: it waits for its own timeout. */
  #end(type: number, from: Station): void {
    if (this.#parts.autopilot !== 'px4') return;
    if (this.#sending && isSame(this.#sending.to, from)) this.#sending = undefined;
    if (type === cancelled) this.receiving = undefined;
  }

  #transfer({ name, fields }: MissionMessage, from: Station, now_ms: number): void {
    if (name === 'MISSION_REQUEST_LIST') this.#sendCount(fields.mission_type, from, now_ms);
    else if (name === 'MISSION_REQUEST_INT' || name === 'MISSION_REQUEST')
      this.#sendItem(fields, from, now_ms);
    else if (name === 'MISSION_COUNT') this.#begin(fields, from, now_ms);
    else if (name === 'MISSION_ITEM_INT') this.#receive(fields, from, now_ms);
    else if (name === 'MISSION_CLEAR_ALL') this.#clear(fields, from);
  }

  #isBusy(
    message: Exclude<MissionMessage, { readonly name: 'MISSION_ACK' | 'MISSION_SET_CURRENT' }>,
    from: Station,
  ): boolean {
    return this.#parts.autopilot === 'px4'
      ? this.#isBusyPx4(message, from)
      : this.#isBusyArduPilot(message.name, message.fields.mission_type, from);
  }

  /** While it receives, it refuses the rest. The station that sends may begin again, or remove what is stored. */
  #isBusyArduPilot(name: MissionMessage['name'], mission_type: number, from: Station): boolean {
    const { receiving } = this;
    if (receiving?.type !== mission_type) return false;
    const mayBeginAgain =
      name === 'MISSION_COUNT' || name === 'MISSION_CLEAR_ALL' || name === 'MISSION_ITEM_INT';
    if (mayBeginAgain && isSame(from, receiving.from)) return false;
    this.ack(from, mission_type, refused);
    if (name === 'MISSION_CLEAR_ALL') this.ack(from, mission_type, error);
    return true;
  }

  /** It has one transfer at a time, whatever its kind: it refuses uploads and ignores the rest, with a text. */
  #isBusyPx4({ name, fields }: MissionMessage, from: Station): boolean {
    if (!this.receiving && !this.#sending) return false;
    if (this.#mayContinuePx4(name, from)) return false;
    if (name === 'MISSION_COUNT') this.ack(from, fields.mission_type, error);
    else if (name === 'MISSION_REQUEST_LIST')
      this.#parts.say?.('Mission download request ignored, already active', severity_info);
    else if (name === 'MISSION_CLEAR_ALL') this.#parts.say?.('WPM: IGN CLEAR CMD: Busy', severity_critical);
    else this.#parts.say?.('WPM: REJ. CMD: partner id mismatch', severity_critical);
    return true;
  }

  /** Whether a message belongs to the transfer, or may begin another one where only the acknowledgement is missing. */
  #mayContinuePx4(name: MissionMessage['name'], from: Station): boolean {
    const { receiving } = this;
    const sending = this.#sending;
    const partner = receiving?.from ?? sending?.to;
    const isPartner = partner !== undefined && isSame(partner, from);
    if (name === 'MISSION_COUNT') return receiving !== undefined && isPartner;
    if (name === 'MISSION_REQUEST_LIST')
      return sending !== undefined && (isPartner || sending.sent === sending.count);
    return name !== 'MISSION_CLEAR_ALL' && isPartner;
  }

  /** Repeats requests, and gives up. */
  tick(now_ms: number): void {
    const { receiving } = this;
    if (this.#sending && now_ms - this.#sending.asked_ms > patience.px4.end_ms) this.#sending = undefined;
    if (!receiving) return;
    const { again_ms, end_ms } = patience[this.#parts.autopilot];
    if (now_ms - receiving.received_ms > end_ms) {
      this.receiving = undefined;
      this.ack(receiving.from, receiving.type, this.#parts.autopilot === 'px4' ? error : cancelled);
    } else if (now_ms - receiving.asked_ms > again_ms) this.request(receiving, now_ms);
  }

  /** An item as it is stored. */
  protected kept(item: Item): Item {
    if (this.#parts.autopilot === 'px4') return item;
    const z = Math.round(item.z * 100) / 100;
    const isPlaced = item.frame !== frame_mission;
    // ArduPilot keeps no heading, cuts times to seconds, and loses the frame of items without a place.
    const param1 = item.command === command_waypoint ? Math.trunc(item.param1) : item.param1;
    const height_m = item.mission_type === type_rally ? Math.trunc(item.z) : z;
    return { ...item, param1, param4: 0, z: height_m, frame: isPlaced ? item.frame : 0 };
  }

  protected request(receiving: Receiving, now_ms: number): void {
    receiving.asked_ms = now_ms;
    this.#parts.reply(this.#parts.autopilot === 'px4' ? 'MISSION_REQUEST_INT' : 'MISSION_REQUEST', {
      ...addressOf(receiving.from),
      seq: receiving.items.length,
      mission_type: receiving.type,
    });
  }

  protected ack(to: Station, mission_type: number, type: number): void {
    this.#parts.reply('MISSION_ACK', { ...addressOf(to), type, mission_type, opaque_id: 0 });
  }

  #setCurrent(seq: number): void {
    if (seq >= (this.stored[type_mission]?.length ?? 0)) return;
    this.current = Math.max(seq, this.first);
    this.isComplete = false;
  }

  #sendCount(mission_type: number, from: Station, now_ms: number): void {
    const stored = this.stored[mission_type] ?? [];
    const count = stored.length;
    const isPx4 = this.#parts.autopilot === 'px4';
    if (isPx4) this.#sending = { type: mission_type, to: from, count, sent: 0, asked_ms: now_ms };
    // An ArduPilot reports no id of what it has stored.
    const opaque_id = isPx4 ? crc32(JSON.stringify(stored)) : 0;
    this.#parts.reply('MISSION_COUNT', { ...addressOf(from), count, mission_type, opaque_id });
  }

  /** A PX4 sends the next item or the last one once more, and ends the transfer for any other request. */
  #isInOrder({ seq, mission_type }: Messages['MISSION_REQUEST'], from: Station, now_ms: number): boolean {
    if (this.#parts.autopilot !== 'px4') return true;
    const sending = this.#sending;
    if (sending?.type !== mission_type) return false;
    sending.asked_ms = now_ms;
    if (seq === sending.sent && seq < sending.count) sending.sent += 1;
    else if (seq !== sending.sent - 1) {
      this.#sending = undefined;
      this.ack(from, mission_type, error);
      return false;
    }
    return true;
  }

  #sendItem(request: Messages['MISSION_REQUEST'], from: Station, now_ms: number): void {
    if (!this.#isInOrder(request, from, now_ms)) return;
    const { seq, mission_type } = request;
    const item = this.stored[mission_type]?.[seq];
    if (!item) this.ack(from, mission_type, invalid_sequence);
    else this.#parts.reply('MISSION_ITEM_INT', { ...item, ...addressOf(from), seq, mission_type });
  }

  #begin({ count, mission_type }: Messages['MISSION_COUNT'], from: Station, now_ms: number): void {
    if (count > capacity) {
      this.ack(from, mission_type, no_space);
      return;
    }
    const items: Item[] = [];
    this.receiving = { type: mission_type, count, from, items, asked_ms: now_ms, received_ms: now_ms };
    // An ArduPilot drops what is beyond the new length at once.
    if (this.#parts.autopilot === 'ardupilot') this.stored[mission_type]?.splice(count);
    this.request(this.receiving, now_ms);
  }

  #receive(item: Item, from: Station, now_ms: number): void {
    const { receiving } = this;
    const isArduPilot = this.#parts.autopilot === 'ardupilot';
    if (receiving?.type !== item.mission_type) {
      if (isArduPilot) this.ack(from, item.mission_type, error);
      return;
    }
    if (item.seq !== receiving.items.length) {
      if (isArduPilot) this.ack(from, item.mission_type, invalid_sequence);
      return;
    }
    receiving.received_ms = now_ms;
    if (isArduPilot && [item.param1, item.param2, item.param3].some(Number.isNaN)) {
      this.receiving = undefined;
      this.ack(from, item.mission_type, invalid_param1);
      return;
    }
    this.#store(item, receiving);
    if (receiving.items.length < receiving.count) this.request(receiving, now_ms);
    else this.#finish(receiving);
  }

  /** An ArduPilot stores each item at once. */
  #store(item: Item, receiving: Receiving): void {
    const kept = this.kept(item);
    receiving.items.push(kept);
    const list = this.stored[receiving.type];
    if (this.#parts.autopilot === 'px4' || !list) return;
    list[item.seq] = item.mission_type === type_mission && item.seq === 0 ? this.#home(item) : kept;
  }

  /** A PX4 stores all items at the end. */
  #finish({ type, items, from }: Receiving): void {
    if (this.#parts.autopilot === 'px4') this.stored[type] = [...items];
    this.receiving = undefined;
    if (type === type_mission) this.#setCurrent(this.first);
    this.ack(from, type, accepted);
  }

  #home(item: Item): Item {
    const { lat, lon, alt_amsl_m } = this.#parts.home;
    return { ...item, x: Math.round(lat * 1e7), y: Math.round(lon * 1e7), z: alt_amsl_m, frame: 0 };
  }

  #clear({ mission_type }: Messages['MISSION_CLEAR_ALL'], from: Station): void {
    for (const [type, list] of this.stored.entries()) {
      if (type === mission_type || mission_type === type_all) list.length = 0;
    }
    if (mission_type === type_mission || mission_type === type_all) this.restart();
    this.ack(from, mission_type, accepted);
  }
}

function isFlownTo(item: Item | undefined): boolean {
  if (!item || item.command > nav_last || item.command === return_home || item.command === delay)
    return false;
  return item.command !== takeoff || item.x !== 0 || item.y !== 0;
}

function isSame(one: Station, other: Station): boolean {
  return one.sysid === other.sysid && one.compid === other.compid;
}

/** The fields that address a message to this station. */
function addressOf({ sysid, compid }: Station) {
  return { target_system: sysid, target_component: compid };
}
