/** Assigns frames to vehicles, their parts and their radios by sender; identifies vehicles. */
import { logRefused } from '../../../src/toolkit/driver/refused-addresses.ts';
import { silenceSince } from '../../../src/platform/stalls.ts';
import { SharedIdLog, sharedIds } from './conflicts.ts';
import { Rivals } from './rivals.ts';
import { assetKeyOf, Contact, type ContactHost, sourceOf } from './contact.ts';
import { Contacts, type Route, routeOf } from './contacts.ts';
import type { Frame } from '../wire/frame.ts';
import { cloneKeyOf, hardwareKeyOf, isKeyOf, isProvisional, nameOfClone } from './identity.ts';
import { autopilotOf, senderOf } from '../reports/kind.ts';
import { isAmongHosts } from '../links/known-source.ts';
import type { Link } from '../links/link.ts';
import { decode, type Decoded, type Messages } from '../wire/messages.ts';
import {
  appearing_rate,
  configured_slot,
  identity_every_ms,
  isConfirmed,
  isEstablished,
  isForAll,
  isMoved,
  remove_after_ms,
  unannounced_silence_ms,
  vehicles_max,
  VehicleSlots,
} from './newcomers.ts';
import { commandsOf, type MavlinkOptions, ownOptions } from '../options.ts';
import type { Outgoing } from '../links/outgoing.ts';
import { own_source, Parts } from './part.ts';
import { SeenRecently } from '../../../src/platform/seen-recently.ts';
import { TokenBucket } from '../../../src/platform/token-bucket.ts';
import type { VehicleEvent } from '../reports/px4-events.ts';
import type { StatusText } from '../reports/status-text.ts';
import { isSameHardware } from '../reports/hardware.ts';
import { FrameCopies } from '../reports/frame-copies.ts';
import { KnownMetadata } from '../reports/metadata-fetch.ts';
import { texts } from './texts.ts';
import { offlineAfter_ms, Vehicle, type VehicleHost } from './vehicle.ts';
import { type Subject, VehicleLog } from './vehicle-log.ts';

type RadioReport = Messages['RADIO_STATUS'];
type RadioMessage = Extract<Decoded, { readonly name: 'RADIO' | 'RADIO_STATUS' }>;

/** Old radios send each report in two messages. */
const twice_ms = 5_000;
const fresh_ms = 10_000;
const places_max = 256;

class Radios {
  readonly #newest = new Map<Link, { readonly report: RadioReport; readonly at_ms: number }>();
  /** From where RADIO_STATUS came, by link and address. */
  readonly #usual = new SeenRecently<string>({ keep_ms: twice_ms, max: places_max });

  /** Returns the latest recent report of the link's radio. */
  newestOf(link: Link, now_ms: number): RadioReport | undefined {
    const newest = this.#newest.get(link);
    return newest && now_ms - newest.at_ms < fresh_ms ? newest.report : undefined;
  }

  /** Gives a report to all vehicles behind the radio, which has its own ids unless `contact` is set: then it is of that one. */
  receive(
    { name, fields }: RadioMessage,
    { link, peer, now_ms }: From,
    { contact, vehicles }: { readonly contact: Contact | undefined; readonly vehicles: readonly Vehicle[] },
  ): void {
    this.#newest.set(link, { report: fields, at_ms: now_ms });
    const behind = vehicles.filter(({ active }) =>
      contact ? active === contact : active.link === link && active.peer === peer,
    );
    if (behind.length === 0 || this.#isSecond(name, `${link.name}|${peer}`, now_ms)) return;
    for (const vehicle of behind) vehicle.receiveRadio(fields);
  }

  /** Whether the radio at `place` has reported the same in the usual message. */
  #isSecond(name: Decoded['name'], place: string, now_ms: number): boolean {
    if (name !== 'RADIO_STATUS') return this.#usual.has(place, now_ms);
    this.#usual.note(place, true, now_ms);
    return false;
  }
}

/**
 * After this time a vehicle that has not answered about its hardware id is identified by its system id: long enough for
 * ten requests on a radio that loses every third frame. A passive driver requests nothing.
 */
const identity_wait_ms = 10_000;
const identity_wait_passive_ms = 5_000;
/** Contacts are dropped this long after their vehicle went offline; the vehicle stays. */
const drop_after_ms = 60_000;

/** A sender beyond a limit asks again with its next heartbeat. */
const refused_ms = 10_000;
const links_max = 16;

/** Processes frames and periodic ticks. */
export class VehicleRegistry implements ContactHost {
  readonly out: Outgoing;
  readonly options: MavlinkOptions;
  readonly rivals: Rivals;
  readonly metadata = new KnownMetadata();
  readonly #parts: VehicleHost & { readonly out: Outgoing };
  readonly #contacts = new Contacts();
  /** By asset_key. */
  readonly #vehicles = new Map<string, Vehicle>();
  readonly #components: Parts;
  /** Of frames of components. */
  readonly #copies = new FrameCopies();
  readonly #radios = new Radios();
  readonly #sharedIds: SharedIdLog;
  readonly #full = new Set<string>();
  readonly #refused = new SeenRecently<Link, string>({ keep_ms: refused_ms, max: links_max });
  readonly #log: VehicleLog;
  readonly #vehicleSlots = new VehicleSlots();
  readonly #appearing = {
    known: new TokenBucket(appearing_rate),
    unknown: new TokenBucket(appearing_rate),
  };

  constructor(parts: VehicleHost & { readonly out: Outgoing }) {
    const { host, options, out } = parts;
    this.#parts = parts;
    this.out = out;
    this.options = options;
    this.rivals = new Rivals(host.log, out);
    this.#log = new VehicleLog(host.log);
    this.#sharedIds = new SharedIdLog(host.log);
    this.#components = new Parts({
      offline_after_ms: options.offline_after_s * 1_000,
      announce: (about) => host.announce(about),
      streamOf: ({ hardware_key }) => ownOptions(options, hardware_key)?.stream ?? options.stream,
      onRefused: (asset_key) => logRefused(host.log, { asset_key }),
      request: (fields, { active }) => out.send('COMMAND_LONG', fields, active),
      onFull: (limit) => this.#refuse('components', limit),
    });
  }

  /** Number of tracked autopilots, announced or not. */
  get contacts(): number {
    return this.#contacts.all.size;
  }

  get vehicles(): readonly Vehicle[] {
    return [...this.#vehicles.values()];
  }

  /** Where each autopilot is received. */
  get routes(): readonly Route[] {
    return [...this.#contacts.all].map(routeOf);
  }

  radioOf(link: Link): Messages['RADIO_STATUS'] | undefined {
    return this.#radios.newestOf(link, performance.now());
  }

  /** The streams of the cameras of a vehicle. */
  streamsOf(vehicle: Vehicle): readonly string[] {
    return this.#components.streamsOf(vehicle);
  }

  /** Which limit keeps senders of this link out; undefined: none does. */
  refusalAt(link: Link, now_ms: number): string | undefined {
    return this.#refused.get(link, now_ms);
  }

  /** Whether another station over this link uses our system and component id. */
  hasRival(link: Link, now_ms: number): boolean {
    return this.rivals.has(link, now_ms);
  }

  /** Processes one verified frame. `now_ms` is monotonic. */
  frame(link: Link, frame: Frame, peer: string, now_ms: number): void {
    const { out } = this;
    if (out.isEcho(frame)) {
      if (!out.isOurs(frame, now_ms)) this.rivals.seen({ link, source: sourceOf(peer) }, now_ms);
      return;
    }
    const message = decode(frame);
    if (!message) return;
    out.observe(message, now_ms);
    const contact = this.#dropStale(this.#contacts.find(link, peer, frame), message, now_ms);
    const from = { link, peer, frame, now_ms };
    if (message.name === 'RADIO_STATUS' || message.name === 'RADIO') {
      this.#radios.receive(message, from, { contact, vehicles: this.vehicles });
    } else if (contact) {
      if (contact.isNew(message, frame, now_ms)) this.#contact(contact, message, from);
    } else if (isForAll(frame)) {
      if (isOfAutopilot(message)) this.#log.ignored(link.name, peer, frame);
    } else if (isOfAutopilot(message)) {
      this.#newcomer(message, from);
    } else {
      this.#component(message, from);
    }
  }

  tick(now_ms: number): void {
    for (const contact of this.#contacts.all) {
      contact.tick(now_ms);
      // A new answer of it is looked at when it comes.
      if (!this.#isSettled(contact)) this.#identify(contact, now_ms);
      const silence_ms = silenceSince(contact.last_ms, now_ms);
      const silence_max_ms = contact.vehicle
        ? offlineAfter_ms(contact, this.options) + drop_after_ms
        : unannounced_silence_ms;
      if (silence_ms > silence_max_ms) this.#drop(contact);
    }
    this.#findConflicts(now_ms);
    for (const vehicle of this.#vehicles.values()) {
      vehicle.tick(now_ms);
      if (vehicle.offline_ms > remove_after_ms && !isEstablished(vehicle)) this.#remove(vehicle);
    }
    this.#components.tick(now_ms);
  }

  #contact(contact: Contact, message: Decoded, { frame, now_ms }: From): void {
    contact.speaks(frame.version, now_ms);
    if (!contact.receive(message, now_ms)) return;
    if (message.name === 'AUTOPILOT_VERSION') this.#identify(contact, now_ms);
    const vehicle = this.#vehicleOf(contact);
    vehicle?.receive(message, contact, now_ms);
    if (vehicle?.active === contact)
      this.#components.ofAutopilot(message, { vehicle, sysid: frame.sysid, compid: frame.compid, now_ms });
  }

  #vehicleOf({ vehicle }: Contact): Vehicle | undefined {
    return vehicle && this.#vehicles.get(vehicle.asset_key);
  }

  #newcomer(message: Decoded, from: From): void {
    const { link, peer, frame, now_ms } = from;
    const { sysid, compid } = frame;
    const there = this.#lastAt({ link, source: sourceOf(peer), sysid, compid });
    const isBeat = message.name === 'HEARTBEAT';
    if (isBeat && there?.heartbeats.isOfProgram(message.fields)) return;
    // Another vehicle may be there now.
    there?.heartbeats.restart();
    const added = this.#addContact(from, there?.heartbeats);
    if (!added) return;
    // Over a satellite it is recognised anyway.
    if (isBeat && there?.vehicle.active.autopilot === autopilotOf(message.fields))
      this.#presume(added, there.vehicle, now_ms);
    this.#contact(added, message, from);
  }

  /** The vehicle that was received there last, with the same ids. */
  #lastAt(place: Parameters<Vehicle['lastAt']>[0]) {
    const there = this.vehicles.flatMap((vehicle) => {
      const last = vehicle.lastAt(place);
      return last ? [{ vehicle, ...last }] : [];
    });
    return there.toSorted((a, b) => b.last_ms - a.last_ms)[0];
  }

  #addContact(from: From, heartbeats: Contact['heartbeats'] | undefined): Contact | undefined {
    const { link, peer, now_ms } = from;
    const { hasSlot, victim, limit } = this.#contacts.slotFor(from);
    if (!hasSlot) return this.#refuse('autopilots', limit, from);
    if (victim) this.#drop(victim);
    const { sysid, compid } = from.frame;
    const isNamed = this.options.signing !== undefined || link.isNamed(peer);
    const contact = new Contact({ link, peer, sysid, compid, isNamed, now_ms, heartbeats }, this);
    this.#contacts.add(contact);
    return contact;
  }

  text(by: Contact, text: StatusText, now_ms: number): void {
    this.#log.text(subjectOf(by), text);
    this.#vehicleOf(by)?.receiveText(text, by, now_ms);
  }

  event(by: Contact, event: VehicleEvent, now_ms: number): void {
    this.#log.event(subjectOf(by), event, by.metadata?.textOf(event));
    this.#vehicleOf(by)?.receiveEvent(event, by, now_ms);
  }

  metadataFault({ asset_key }: Contact, reason: string): void {
    this.#parts.host.log.info({ asset_key, reason }, texts.metadata_missing);
  }

  /** Takes a new contact for the vehicle that was received there last, if that is lost. */
  #presume(contact: Contact, last: Vehicle, now_ms: number): void {
    if (last.isForeign(contact) || !isSilent(last.active, now_ms, this.options)) return;
    last.presume(contact, now_ms);
    contact.vehicle = last;
  }

  /** Confirms, or ends, what was presumed of a contact when it says which hardware it is. */
  #confirm(contact: Contact, now_ms: number): void {
    const vehicle = this.#vehicleOf(contact);
    if (!contact.isPresumed || !vehicle) return;
    const { id } = contact.hardware;
    const isSame =
      id === undefined && vehicle.hardware_id === undefined
        ? this.#isIdentifiable(contact, now_ms) || undefined
        : isSameHardware(vehicle.hardware_id, id);
    // An answer that cannot be compared is none of the vehicle's.
    if (isSame === undefined && id === undefined) return;
    contact.isPresumed = false;
    if (isSame === true) return contact.assume(vehicle.hardware_key);
    release(contact);
  }

  /** Assigns the contact to its vehicle when the vehicle is identified. */
  #identify(contact: Contact, now_ms: number): void {
    this.#confirm(contact, now_ms);
    const known = this.#vehicleOf(contact);
    assumeIdentity(contact, this.vehicles);
    if (!this.#isIdentifiable(contact, now_ms)) return;
    this.#settle(contact, known);
    if (!this.#isFromItsHost(contact)) return;
    if (known ? !this.#mayChange(contact, known, now_ms) : !this.#isAdmitted(contact)) return;
    const asset_key = this.#keyOf(contact, now_ms);
    if (asset_key === undefined) return;
    if (known) this.#unassign(contact, known);
    const vehicle = this.#vehicles.get(asset_key) ?? this.#appear(asset_key, contact, now_ms);
    if (vehicle) this.#assign(contact, vehicle, now_ms);
  }

  /** Whether it is with the vehicle that it has said to be. */
  #isSettled(contact: Contact): boolean {
    const key = contact.vehicle?.asset_key;
    return key !== undefined && !contact.isPresumed && !isProvisional(key) && isKeyOf(key, contact);
  }

  /** Gives the contact the key of its hardware. A number that it reports later may be the one that the configuration names. */
  #settle(contact: Contact, known: Vehicle | undefined): void {
    known?.learn(contact);
    const configured = this.options.vehicles;
    const key = hardwareKeyOf(contact, this.vehicles, configured);
    if (!known || (!known.isConfigured && Object.hasOwn(configured, key))) contact.assume(key);
  }

  #assign(contact: Contact, vehicle: Vehicle, now_ms: number): void {
    contact.identified_ms = now_ms;
    this.#retractProvisional(vehicle.asset_key, contact);
    vehicle.add(contact);
    contact.vehicle = vehicle;
    // Should its former system id be received again, that is identified anew.
    if (vehicle.isForeign(contact)) return;
    for (const each of vehicle.contacts) if (each.sysid !== contact.sysid) this.#drop(each);
  }

  /** Whether another vehicle sends from the address now, as far as that may change so soon. */
  #mayChange(contact: Contact, known: Vehicle, now_ms: number): boolean {
    if (isKeyOf(known.asset_key, contact)) return false;
    return isProvisional(known.asset_key) || now_ms - contact.identified_ms >= identity_every_ms;
  }

  /** Whether its hardware id is known, or will not be. */
  #isIdentifiable(contact: Contact, now_ms: number): boolean {
    const wait_ms = this.options.passive ? identity_wait_passive_ms : identity_wait_ms;
    if (contact.isHighLatency) return true;
    return contact.hasAnswered(now_ms) || now_ms - contact.first_ms >= wait_ms;
  }

  /** Removes what an earlier run announced of this vehicle before its hardware id was known. */
  #retractProvisional(asset_key: string, { sysid, compid }: Contact): void {
    if (isProvisional(asset_key)) return;
    const key = assetKeyOf({ uid: undefined, sysid, compid });
    const { host, options } = this.#parts;
    if (!this.#vehicles.has(key) && !Object.hasOwn(options.vehicles, key)) host.retract(key);
  }

  /** Whether a contact may become a vehicle: known vehicles immediately, after an outage or with another address. */
  #isAdmitted(contact: Contact): boolean {
    const { asset_key } = contact;
    const isOwn = this.#vehicles.has(asset_key) || Object.hasOwn(this.options.vehicles, asset_key);
    return isOwn || isConfirmed(contact);
  }

  #isFromItsHost(contact: Contact): boolean {
    const { asset_key } = contact;
    if (isAmongHosts(ownOptions(this.options, asset_key)?.hosts, contact)) return true;
    this.#log.refused(asset_key, contact.source);
    return false;
  }

  /** Undefined until it is known whether the same hardware is there twice. */
  #keyOf(contact: Contact, now_ms: number): string | undefined {
    const key = contact.asset_key;
    const vehicle = this.#vehicles.get(key);
    // A stranger that serves in its place while it is lost keeps it from nothing.
    const isStandIn = vehicle?.isForeign(vehicle.active) === true && !vehicle.isForeign(contact);
    const is_moved = isStandIn || isMoved(vehicle?.active, contact, now_ms);
    return is_moved === false ? cloneKeyOf(contact) : is_moved && key;
  }

  /** Returns undefined if no slot is free, or as long as others have just appeared. */
  #appear(asset_key: string, contact: Contact, now_ms: number): Vehicle | undefined {
    const { options } = this;
    const hardware_key = contact.asset_key;
    const own = ownOptions(options, asset_key);
    const name = own?.name ?? nameOfClone(ownOptions(options, hardware_key)?.name, contact);
    const keys = [asset_key, hardware_key, ...contact.hardware.names.map((each) => `mavlink:${each}`)];
    if (!this.#appearing[own ? 'known' : 'unknown'].take(now_ms)) return undefined;
    const { hasSlot, victim } = own ? configured_slot : this.#vehicleSlots.slotFor(this.vehicles, now_ms);
    if (!hasSlot) return this.#refuse('vehicles', vehicles_max, { link: contact.link, now_ms });
    if (victim) this.#remove(victim);
    const enabled = commandsOf(options, keys, { isProvisional: isProvisional(asset_key) });
    const vehicle = new Vehicle({ asset_key, hardware_key, contact, name, own, enabled }, this.#parts);
    this.#vehicles.set(asset_key, vehicle);
    return vehicle;
  }

  #remove(vehicle: Vehicle): void {
    for (const contact of vehicle.contacts) this.#drop(contact);
    vehicle.remove();
    this.#vehicles.delete(vehicle.asset_key);
    this.#components.removeOf(vehicle);
  }

  #unassign(contact: Contact, vehicle: Vehicle): void {
    release(contact);
    const isSame = isSameHardware(vehicle.hardware_id, contact.hardware.id) === true;
    if (!vehicle.isAbandoned || !(isProvisional(vehicle.asset_key) || isSame)) return;
    // It had another key until the one by which it is known was reported.
    this.#remove(vehicle);
  }

  /** Drops a contact after an outage: another vehicle may send from the address, so it must be identified again. */
  #dropStale(contact: Contact | undefined, { name, fields }: Decoded, now_ms: number): Contact | undefined {
    if (!contact || !isSilent(contact, now_ms, this.options)) return contact;
    if (name === 'HEARTBEAT' && contact.heartbeats.isOfProgram(fields)) return contact;
    this.#drop(contact);
    return undefined;
  }

  #drop(contact: Contact): void {
    this.#contacts.delete(contact);
    release(contact);
  }

  #component(message: Decoded, { link, peer, frame, now_ms }: From): void {
    const { sysid, compid } = frame;
    if (!this.#copies.isNew(message, frame, now_ms)) return;
    const own = this.#vehicleBehind(link, peer, sysid);
    const vehicle = own ?? this.#vehicleBeside(link, sysid);
    const source = own ? own_source : `${link.name} ${sourceOf(peer)}`;
    if (!vehicle) return;
    for (const text of this.#components.receive(message, { vehicle, source, sysid, compid, now_ms })) {
      this.#log.text({ asset_key: vehicle.asset_key, isVehicle: true }, text);
      vehicle.receivePartText(text, link, now_ms);
    }
  }

  #vehicleBehind(link: Link, peer: string, sysid: number): Vehicle | undefined {
    for (const contact of this.#contacts.at(link, peer)) {
      const vehicle = contact.sysid === sysid ? this.#vehicleOf(contact) : undefined;
      if (vehicle && (contact === vehicle.active || !vehicle.isForeign(contact))) return vehicle;
    }
    return undefined;
  }

  /** A camera may have its own address behind the same link; its system id names the vehicle, if only one has it. */
  #vehicleBeside(link: Link, sysid: number): Vehicle | undefined {
    const same = this.vehicles.filter(({ active }) => active.link === link && active.sysid === sysid);
    return same.length === 1 && same[0]?.conflict === undefined ? same[0] : undefined;
  }

  #findConflicts(now_ms: number): void {
    const shared = sharedIds(this.#contacts.all, now_ms);
    this.#sharedIds.note(shared);
    for (const vehicle of this.#vehicles.values()) {
      const { active } = vehicle;
      vehicle.confusable = shared.confusable;
      vehicle.conflict = shared.confusable.has(active) ? texts.id_shared(active.sysid) : undefined;
      vehicle.namesake = shared.apart.has(active) ? texts.id_elsewhere(active.sysid) : undefined;
      const { sysid: own, compid } = this.out;
      const has_rival = this.rivals.isAt(active, now_ms);
      vehicle.warning = has_rival ? texts.own_id_shared(own, compid) : undefined;
    }
  }

  #refuse(what: string, limit: number, from?: Pick<From, 'link' | 'now_ms'>): undefined {
    if (!this.#full.has(what)) this.#parts.host.log.error({ what, limit }, texts.limit_reached);
    this.#full.add(what);
    if (from) this.#refused.note(from.link, texts.more_senders(what, limit), from.now_ms);
    return undefined;
  }
}

interface From {
  readonly link: Link;
  readonly peer: string;
  readonly frame: Frame;
  readonly now_ms: number;
}

function subjectOf({ vehicle, asset_key }: Contact): Subject {
  return { asset_key: vehicle?.asset_key ?? asset_key, isVehicle: vehicle !== undefined };
}

/** Takes a contact from its vehicle. */
function release(contact: Contact): void {
  contact.vehicle?.contacts.delete(contact);
  contact.vehicle = undefined;
}

// Recognises vehicles that are received over a satellite.

/** Whether an autopilot reports itself, near or over a satellite. */
function isOfAutopilot({ name, fields }: Decoded): boolean {
  return (name === 'HEARTBEAT' || name === 'HIGH_LATENCY2') && senderOf(fields).is === 'autopilot';
}

/** Over a satellite a vehicle reports no hardware id: the known vehicle with its system id is the same one. */
function assumeIdentity(contact: Contact, vehicles: readonly Vehicle[]): void {
  const { isHighLatency, hardware, sysid, compid, asset_key } = contact;
  if (!isHighLatency || hardware.id !== undefined || !isProvisional(asset_key)) return;
  const same = vehicles.filter(
    ({ active, asset_key: key }) => !isProvisional(key) && active.sysid === sysid && active.compid === compid,
  );
  if (same.length === 1 && same[0]) contact.assume(same[0].asset_key);
}

/** Whether it could have been received and was not for so long that its vehicle is offline. */
function isSilent(contact: Contact, now_ms: number, options: MavlinkOptions): boolean {
  return silenceSince(contact.last_ms, now_ms) >= offlineAfter_ms(contact, options);
}
