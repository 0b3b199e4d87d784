/** One autopilot as received from one peer of one link: its latest messages, restarts, and the requests to it. */
import { silenceSince } from '../../../src/platform/stalls.ts';
import { BootClock } from '../reports/boot-clock.ts';
import { EventIntake, type VehicleEvent } from '../reports/px4-events.ts';
import { Hardware, isSameHardware } from '../reports/hardware.ts';
import { type KnownMetadata, MetadataFetch } from '../reports/metadata-fetch.ts';
import { LatestMessages } from '../reports/latest-messages.ts';
import { heartbeatOf } from './high-latency.ts';
import {
  autopilotOf,
  type Autopilot,
  kindOf,
  type Kind,
  quadplane_parameter,
  QuadplaneEvidence,
} from '../reports/kind.ts';
import type { Link } from '../links/link.ts';
import { FrameCopies } from '../reports/frame-copies.ts';
import type { Frame, MavlinkVersion } from '../wire/frame.ts';
import type { Decoded, Messages } from '../wire/messages.ts';
import { isTransfer } from './mission-kinds.ts';
import { modeToList } from './modes.ts';
import { Overturned } from '../reports/overturned.ts';
import type { Outgoing } from '../links/outgoing.ts';
import { OwnHeartbeats, Burst } from '../reports/own-heartbeats.ts';
import { type StatusText, StatusTexts } from '../reports/status-text.ts';
import type { MavlinkOptions } from '../options.ts';
import type { Rivals } from './rivals.ts';
import { sendRequest, Streams } from './streams.ts';
import { UnansweredCopies } from '../reports/unanswered.ts';

const usual_component = 1;

type CommandAck = Messages['COMMAND_ACK'];

interface ContactParts {
  readonly link: Link;
  readonly peer: string;
  readonly sysid: number;
  readonly compid: number;
  /** Whether the configuration names where it is received from, or its frames are signed. */
  readonly isNamed: boolean;
  readonly now_ms: number;
  /** What is known of the heartbeats under its ids from before a silence; undefined: nothing. */
  readonly heartbeats?: OwnHeartbeats | undefined;
}

/** What a contact knows of the vehicle that it receives. */
interface Received {
  readonly asset_key: string;
  readonly contacts: Set<Contact>;
  readonly active: Contact;
  readonly hasHosts: boolean;
  readonly namesake: string | undefined;
}

/** What the autopilots of a driver share, and who is told what they report. */
export interface ContactHost {
  readonly out: Outgoing;
  readonly options: Pick<MavlinkOptions, 'passive' | 'streams'>;
  readonly rivals: Pick<Rivals, 'isAt' | 'seen'>;
  /** What is known of the events of firmwares. */
  readonly metadata: KnownMetadata;
  /** The metadata of the events could not be read. */
  metadataFault(contact: Contact, reason: string): void;
  /** Receives a complete text of the vehicle. */
  text(contact: Contact, text: StatusText, now_ms: number): void;
  /** Receives an event that was not received before. */
  event(contact: Contact, event: VehicleEvent, now_ms: number): void;
}

/** An autopilot does not start twice within this time. */
const restart_pause_ms = 1_000;
/** Two vehicles that share an address keep producing evidence, so it expires after this time. */
const shared_evidence_ms = 75_000;
/** An answer to a request for its time is of no use later. */
const probe_max_ms = 60_000;
const probe_units_per_ms = 1_000;
const acks_max = 16;
const texts_max = 20;
const modes_max = 128;
/** The name of an external mode of PX4 that has not registered (mavlink/streams/AVAILABLE_MODES.hpp). */
const mode_absent = '(Mode not available)';
/** One vehicle sends one heartbeat a second. So many within `beats_window_ms` may come from two. */
const beats_of_two = 8;
const beats_window_ms = 5_000;
/** Two clocks were seen as lately as that. */
const two_clocks_ms = 15_000;
/** Its longer id is awaited for this long after its shorter one: it changes to MAVLink 2 with the next heartbeat of the kit. */
const longer_id_wait_ms = 3_000;
/** Without a heartbeat for this long, a vehicle is received by HIGH_LATENCY2 alone. */
const beat_fresh_ms = 3_000;
const command_set_interval = 511;
const command_request_message = 512;
const command_request_capabilities = 520;
const command_get_home = 410;
const result_in_progress = 5;
/** MAV_STANDARD_MODE, by number. */
const standard_modes = ' POSITION_HOLD ORBIT CRUISE ALTITUDE_HOLD SAFE_RECOVERY MISSION LAND TAKEOFF'.split(
  ' ',
);
const standard_safe_recovery = standard_modes.indexOf('SAFE_RECOVERY');
const stream_requests: ReadonlySet<number> = new Set([
  command_set_interval,
  command_request_message,
  command_request_capabilities,
  command_get_home,
]);

export class Contact {
  readonly link: Link;
  readonly peer: string;
  /** The peer without its port, kept since a flood compares it with each frame. */
  readonly source: string;
  readonly sysid: number;
  readonly compid: number;
  readonly isNamed: boolean;
  readonly latest = new LatestMessages();
  readonly clock = new BootClock();
  readonly first_ms: number;
  last_ms: number;
  #version: MavlinkVersion = 2;
  /** When it was last seen armed, and in the air: of two vehicles behind one address, either one of them. */
  armed_ms = Number.NEGATIVE_INFINITY;
  airborne_ms = Number.NEGATIVE_INFINITY;
  /** Heartbeats so far. */
  beats = 0;
  autopilot: Autopilot = 'other';
  kind: Kind = 'other';
  /** MAV_TYPE of its latest heartbeat; a restart does not change it. */
  mav_type = 0;
  /** The key of its asset, provisional until the hardware id is known. */
  asset_key: string;
  /** The vehicle that it receives, once that is known. */
  vehicle: Received | undefined;
  /** When it was given to its vehicle. */
  identified_ms = Number.NEGATIVE_INFINITY;
  /** Whether it is taken for the vehicle that was received here before a silence, and has not confirmed that. */
  isPresumed = false;
  /** Number of observed restarts of the autopilot. */
  boots = 0;
  /** Newest last. */
  readonly acks: { readonly ack: CommandAck; readonly at_ms: number }[] = [];
  readonly texts: { readonly text: StatusText; readonly at_ms: number }[] = [];
  /** Names of its flight modes by number, from its own list. */
  readonly modes = new Map<number, string>();
  /** Those that bring it to a safe place, by the list. */
  readonly recovery_modes = new Set<number>();
  readonly events = new EventIntake();
  readonly #metadata: MetadataFetch;
  readonly unanswered = new UnansweredCopies();
  readonly overturned = new Overturned();
  readonly #host: ContactHost;
  /** Answers by what tells them apart. */
  readonly #copies = new FrameCopies();
  readonly #statusTexts = new StatusTexts();
  /** Undefined until its first heartbeat. */
  streams: Streams | undefined;
  #restarted_ms = Number.NEGATIVE_INFINITY;
  #shared_ms = Number.NEGATIVE_INFINITY;
  readonly #quadplane = new QuadplaneEvidence();
  readonly hardware = new Hardware();
  /** It has the key of its vehicle. */
  #isSettled = false;
  #answered_ms = Number.POSITIVE_INFINITY;
  readonly heartbeats: OwnHeartbeats;
  readonly #beats = new Burst(beats_of_two, beats_window_ms);
  /** When it last answered another station about missions. */
  #other: { readonly target_system: number; readonly at_ms: number } | undefined;
  #beat_ms = Number.NEGATIVE_INFINITY;
  #probed: Contact['probed'];
  #isHighLatency = false;

  constructor({ link, peer, sysid, compid, isNamed, now_ms, heartbeats }: ContactParts, host: ContactHost) {
    this.link = link;
    this.peer = peer;
    this.source = sourceOf(peer);
    this.sysid = sysid;
    this.compid = compid;
    this.isNamed = isNamed;
    this.asset_key = assetKeyOf({ uid: undefined, sysid, compid });
    this.first_ms = now_ms;
    this.last_ms = now_ms;
    this.#host = host;
    this.#metadata = new MetadataFetch(host.metadata, (reason) => host.metadataFault(this, reason));
    this.heartbeats = heartbeats ?? new OwnHeartbeats();
  }

  /** Whether it is received by HIGH_LATENCY2 alone. */
  get isHighLatency(): boolean {
    return this.#isHighLatency;
  }

  /** Takes the key of its vehicle: over a satellite it reports no identity, and near it may have reported several. */
  assume(asset_key: string): void {
    this.asset_key = asset_key;
    this.#isSettled = true;
  }

  /** MAVLink version of its latest frame, in which it is addressed: an old autopilot reads version 1 only. */
  get version(): MavlinkVersion {
    return this.#version;
  }

  /** Notes the version of a frame. An autopilot that changes to MAVLink 2 can report its longer id. */
  speaks(version: MavlinkVersion, now_ms: number): void {
    const isNewer = version > this.#version;
    this.#version = version;
    if (isNewer && this.hardware.awaitsLonger) this.streams?.requestIdentity(now_ms);
  }

  /** Whether it has said which hardware it is, or that it cannot, and will not say more soon. */
  hasAnswered(now_ms: number): boolean {
    const { id, awaitsLonger } = this.hardware;
    if (awaitsLonger && !this.#host.options.passive)
      return id !== undefined && now_ms - this.#answered_ms > longer_id_wait_ms;
    const hasReported = this.latest.last('AUTOPILOT_VERSION') !== undefined;
    return id !== undefined || hasReported || this.streams?.hasNoIdentity === true;
  }

  /** Whether it answers nothing that is sent to it here. */
  get isDeaf(): boolean {
    return this.streams?.isIgnored === true && !this.isHighLatency;
  }

  /** When it was first received, or has restarted: it reports what is requested from it within the next seconds. */
  get begun_ms(): number {
    return Math.max(this.first_ms, this.#restarted_ms);
  }

  /**
   * Sends it a TIMESYNC, which both autopilots answer at once with the time in it. The answer shows that what was sent before has arrived
   * or is lost: no link lets a frame overtake another.
   */
  probe(now_ms: number): void {
    this.send('TIMESYNC', { tc1: 0, ts1: Math.round(now_ms * probe_units_per_ms), ...this.target });
  }

  /** The newest answer to one: when that was sent, and when the answer was received. */
  get probed(): { readonly sent_ms: number; readonly at_ms: number } | undefined {
    return this.#probed;
  }

  /** Whether it is an iNav or a Betaflight, which carry out no command (`src/main/telemetry/mavlink.c` of both). */
  get isTelemetryOnly(): boolean {
    return this.clock.countsMicroseconds;
  }

  /** The fields that address a message to it. */
  get target(): { readonly target_system: number; readonly target_component: number } {
    return { target_system: this.sysid, target_component: this.compid };
  }

  /** Boot time of the autopilot on our clock; undefined until it is reported. */
  get booted_at_ms(): number | undefined {
    return this.clock.booted_at_ms;
  }

  /** Whether two vehicles with one system id send from this address, so that messages cannot be attributed. */
  isShared(now_ms: number): boolean {
    return now_ms - this.#shared_ms < shared_evidence_ms;
  }

  /** Whether a message is addressed to us and not to another station. */
  isToUs(message: { readonly target_system: number; readonly target_component: number }): boolean {
    const { sysid, compid } = this.#host.out;
    return message.target_system === sysid && message.target_component === compid;
  }

  /** The system id of another station with which it has transferred missions since then. */
  otherTransfer(since_ms: number): number | undefined {
    return this.#other && this.#other.at_ms >= since_ms ? this.#other.target_system : undefined;
  }

  /** What its events mean; undefined until its file was read, and without one. */
  get metadata(): MetadataFetch['metadata'] {
    return this.#metadata.metadata;
  }

  /** Whether another station uses our ids: the answers of the vehicle to it look like answers to us. */
  get hasRival(): boolean {
    return this.#host.rivals.isAt(this, performance.now());
  }

  /** Whether it is no answer and no text that has been received before. */
  isNew(message: Decoded, frame: Frame, now_ms: number): boolean {
    return this.#copies.isNew(message, frame, now_ms);
  }

  /** Returns whether the link accepted the frame. */
  send<K extends keyof Messages>(name: K, fields: Messages[K]): boolean {
    return this.#host.out.send(name, fields, this);
  }

  /** Discards frames that were sent until `sent_ms` and have not left this machine. */
  discardUnsent(sent_ms: number): void {
    this.link.discard(this.peer, sent_ms);
  }

  /** Returns whether the message counts: what another program sends in its place is not of the vehicle. */
  receive(message: Decoded, now_ms: number): boolean {
    if (message.name === 'HEARTBEAT' && !this.heartbeats.isOwn(message.fields, now_ms)) return false;
    this.last_ms = now_ms;
    if (this.clock.receive(message, now_ms)) this.#restart(now_ms);
    this.#store(message, now_ms);
    this.overturned.receive(message, now_ms);
    this.streams?.received(message.name, now_ms);
    const { name, fields } = message;
    if (name === 'HEARTBEAT') this.#beat(fields, now_ms);
    else if (name === 'COMMAND_ACK') this.#acknowledge(fields, now_ms);
    else if (name === 'STATUSTEXT') this.#addText(this.#statusTexts.receive(fields, now_ms), now_ms);
    else if (name === 'AUTOPILOT_VERSION') this.#identify(fields, now_ms);
    else if (name === 'EXTENDED_SYS_STATE') this.#receiveState(fields, now_ms);
    else if (name === 'PARAM_VALUE') this.#detectQuadplane(() => this.#quadplane.receiveParameter(fields));
    else if (name === 'HIGH_LATENCY2') this.#receiveHighLatency(fields, now_ms);
    else this.#collect(message, now_ms);
    this.#learnEvents(message);
    return true;
  }

  /** An answer to another station is not what the vehicle reports to this one. */
  #store(message: Decoded, now_ms: number): void {
    if (isTransfer(message) && !this.isToUs(message.fields))
      this.#other = { ...message.fields, at_ms: now_ms };
    else this.latest.put(message, now_ms);
  }

  tick(now_ms: number): void {
    for (const text of this.#statusTexts.overdue(now_ms)) this.#addText(text, now_ms);
    if (this.#host.options.passive || this.isHighLatency || !this.link.hasRoom(this.peer)) return;
    const request = this.streams?.next(now_ms);
    if (request) sendRequest(request, this);
    const { target } = this;
    if (this.#quadplane.isDue(now_ms))
      this.send('PARAM_REQUEST_READ', { ...target, param_id: quadplane_parameter, param_index: -1 });
    const payload = this.#metadata.next(now_ms);
    if (payload) this.send('FILE_TRANSFER_PROTOCOL', { target_network: 0, ...target, payload });
    const missed = this.events.next(now_ms);
    if (missed) this.send('REQUEST_EVENT', { ...missed, ...target });
  }

  /** Collects what the autopilot reports in several messages: modes and events, and its answers to probes. */
  #collect({ name, fields }: Decoded, now_ms: number): void {
    if (name === 'AVAILABLE_MODES') {
      this.#nameMode(fields);
    } else if (name === 'CURRENT_EVENT_SEQUENCE') {
      this.events.current(fields);
    } else if (name === 'RESPONSE_EVENT_ERROR') {
      this.events.gone(fields.sequence_oldest_available);
    } else if (name === 'TIMESYNC') {
      this.#noteProbe(fields, now_ms);
    } else if (name === 'EVENT' && this.events.take(fields)) {
      this.streams?.request('metadata');
      this.#host.event(this, fields, now_ms);
    }
  }

  /** A standard mode needs no name of its own (common.xml, AVAILABLE_MODES). */
  #nameMode({ custom_mode, mode_name, standard_mode }: Messages['AVAILABLE_MODES']): void {
    const name = mode_name || standard_modes[standard_mode];
    const hasRoom = this.modes.size < modes_max || this.modes.has(custom_mode);
    if (!name || name === mode_absent || !hasRoom) return;
    this.modes.set(custom_mode, name);
    if (standard_mode === standard_safe_recovery) this.recovery_modes.add(custom_mode);
  }

  /** What its events mean is in a file that it serves. */
  #learnEvents({ name, fields }: Decoded): void {
    if (name === 'COMPONENT_METADATA') this.#metadata.announced(fields.uri);
    else if (name === 'COMPONENT_INFORMATION') this.#metadata.announced(fields.general_metadata_uri);
    else if (name === 'FILE_TRANSFER_PROTOCOL' && this.isToUs(fields)) this.#metadata.receive(fields);
  }

  #beat(heartbeat: Messages['HEARTBEAT'], now_ms: number): void {
    const found = this.#classify(heartbeat);
    this.#isHighLatency = false;
    this.#beat_ms = now_ms;
    if (isArmed(heartbeat)) this.armed_ms = now_ms;
    if (!this.streams || found !== this.autopilot)
      this.streams = new Streams(found, this.#host.options.streams, now_ms);
    this.autopilot = found;
    const listed = modeToList(found, this.kind, { ...heartbeat, offered: this.modes });
    if (listed !== undefined) this.streams.requestModes(listed);
    if (!this.#beats.note(now_ms)) return;
    this.streams.recheckIdentity(now_ms);
    // Neither shows two vehicles alone: another program may send heartbeats, and a second radio of the same vehicle may be slow.
    if (now_ms - this.clock.twofold_ms < two_clocks_ms) this.#shared_ms = now_ms;
  }

  #classify({ type, autopilot }: Pick<Messages['HEARTBEAT'], 'autopilot' | 'type'>): Autopilot {
    this.beats += 1;
    this.mav_type = type;
    if (autopilotOf({ type, autopilot }) === 'ardupilot') this.#quadplane.receiveType(type);
    // An autopilot reports type 0 while it starts.
    if (type !== 0) this.kind = this.#quadplane.isQuadplane ? 'vtol' : kindOf(type);
    // iNav may announce itself as ArduPilot (QOpenHD#206).
    return this.isTelemetryOnly ? 'other' : autopilotOf({ type, autopilot });
  }

  /** A vehicle that also sends heartbeats is not far away: the message is ignored. */
  #receiveHighLatency(report: Messages['HIGH_LATENCY2'], now_ms: number): void {
    if (silenceSince(this.#beat_ms, now_ms) < beat_fresh_ms) return;
    this.autopilot = this.#classify(report);
    this.#isHighLatency = true;
    this.latest.put({ name: 'HEARTBEAT', fields: heartbeatOf(report, this.autopilot) }, now_ms);
  }

  #acknowledge(ack: CommandAck, now_ms: number): void {
    if (!this.#host.out.isForUs(ack)) return;
    if (this.#host.out.isUnexpected(ack, now_ms)) this.#host.rivals.seen(this, now_ms);
    if (stream_requests.has(ack.command)) {
      this.streams?.acknowledged(ack.command, ack.result);
      return;
    }
    // It may be to a command of the other station.
    if (this.hasRival) return;
    if (ack.result !== result_in_progress) this.unanswered.answered(ack.command);
    this.acks.push({ ack, at_ms: now_ms });
    if (this.acks.length > acks_max) this.acks.shift();
  }

  /** It also asks, with a `tc1` of 0, and answers other stations, with their time. */
  #noteProbe({ tc1, ts1 }: Messages['TIMESYNC'], now_ms: number): void {
    const sent_ms = ts1 / probe_units_per_ms;
    if (tc1 !== 0 && sent_ms <= now_ms && sent_ms > (this.#probed?.sent_ms ?? now_ms - probe_max_ms))
      this.#probed = { sent_ms, at_ms: now_ms };
  }

  #addText(text: StatusText | undefined, now_ms: number): void {
    if (!text) return;
    this.texts.push({ text, at_ms: now_ms });
    if (this.texts.length > texts_max) this.texts.shift();
    this.#host.text(this, text, now_ms);
  }

  #receiveState(state: Messages['EXTENDED_SYS_STATE'], now_ms: number): void {
    if (isInAir(state)) this.airborne_ms = now_ms;
    this.#detectQuadplane(() => this.#quadplane.receiveState(state, this.mav_type));
  }

  #detectQuadplane(note: () => void): void {
    if (this.autopilot !== 'ardupilot') return;
    note();
    if (this.#quadplane.isQuadplane) this.kind = 'vtol';
  }

  #identify(version: Messages['AUTOPILOT_VERSION'], now_ms: number): void {
    const { hardware, boots } = this;
    this.#answered_ms = Math.min(this.#answered_ms, now_ms);
    const before = hardware.id;
    const isOther = hardware.receive(version, { in: this.#version, boots, now_ms });
    // The next answers show whether the earlier one comes back.
    if (isOther && !this.isShared(now_ms)) this.streams?.requestIdentity(now_ms);
    if (hardware.twofold_ms === now_ms) this.#shared_ms = now_ms;
    const [uid] = hardware.names;
    // Another number of the same vehicle does not change its key.
    if (uid === undefined || (this.#isSettled && isSameHardware(before, hardware.id) === true)) return;
    this.#isSettled = false;
    this.asset_key = assetKeyOf({ uid, sysid: this.sysid, compid: this.compid });
  }

  #restart(now_ms: number): void {
    this.boots += 1;
    this.latest.clear();
    this.overturned.restart();
    this.modes.clear();
    this.recovery_modes.clear();
    this.#quadplane.restart();
    this.heartbeats.restart();
    this.events.restart();
    this.#metadata.restart();
    // While a vehicle seems to restart with each message, nothing is requested from it.
    if (now_ms - this.#restarted_ms >= restart_pause_ms) this.streams?.restart(now_ms);
    this.#restarted_ms = now_ms;
  }
}

/** Returns the peer without its UDP or TCP port: a host with many ports is one source. */
export function sourceOf(peer: string): string {
  return peer.replace(/:\d+$/u, '');
}

/** Returns the key from the hardware id, or from the configured system and component ids if there is none. */
export function assetKeyOf({
  uid,
  sysid,
  compid,
}: Pick<Contact, 'sysid' | 'compid'> & { readonly uid: string | undefined }): string {
  if (uid !== undefined) return `mavlink:${uid}`;
  return compid === usual_component
    ? `mavlink:system-${sysid}`
    : `mavlink:system-${sysid}-component-${compid}`;
}

const armed_bit = 128;
/** LANDED_STATE in which a vehicle takes off, flies or lands. */
const landed_states_in_air: ReadonlySet<number> = new Set([2, 3, 4]);

export function isArmed({ base_mode }: Messages['HEARTBEAT']): boolean {
  return (base_mode & armed_bit) !== 0;
}

export function isInAir({ landed_state }: Messages['EXTENDED_SYS_STATE']): boolean {
  return landed_states_in_air.has(landed_state);
}
