/** Sorts what comes in by its sender: vehicles, their parts and their radios; finds out who is who. */
import type { droneFeeds } from '../../src/contract/feeds.ts';
import type { DriverHost } from '../../src/driver/driver.ts';
import { vehicleCommands } from './commands.ts';
import { sharedSystemIds } from './conflicts.ts';
import { Contact } from './contact.ts';
import { Contacts } from './contacts.ts';
import type { Frame } from './frame.ts';
import { isProvisional, vehicleAsset } from './identity.ts';
import { senderOf } from './kind.ts';
import type { Link } from './link.ts';
import { decode, type Decoded, type Messages } from './messages.ts';
import type { MavlinkOptions } from './options.ts';
import type { Outgoing } from './outgoing.ts';
import { Part } from './part.ts';
import { eventLevel, eventText, type VehicleEvent } from './px4-events.ts';
import type { StatusText } from './status-text.ts';
import { conflictText, Vehicle } from './vehicle.ts';

export interface FleetParts {
  readonly host: DriverHost<typeof droneFeeds>;
  readonly options: MavlinkOptions;
  readonly out: Outgoing;
}

/** Autopilots and components that are kept apart; what would be one more is logged once. */
const contacts_max = 128;
const parts_max = 128;
/** After this, a vehicle that does not tell its identity is known by the system id that is set in it. */
const identity_wait_ms = 5_000;
/** Contacts are forgotten this long after their vehicle went offline; the vehicle stays. */
const forget_ms = 60_000;
/** Old radios report twice, in two messages. */
const radio_twice_ms = 5_000;
const radio_fresh_ms = 10_000;
const command_request_message = 512;
const severity_warning = 4;
const severity_debug = 7;
const text_repeat_ms = 60_000;
const texts_remembered_max = 200;

/** Feed it frames and ticks. */
export class Fleet {
  readonly #parts: FleetParts;
  readonly #contacts = new Contacts();
  readonly #vehicleOf = new Map<Contact, Vehicle>();
  /** By asset_key. */
  readonly #vehicles = new Map<string, Vehicle>();
  readonly #components = new Map<string, Part>();
  readonly #radios = new Map<string, number>();
  readonly #radioOf = new Map<Link, { readonly report: Messages['RADIO_STATUS']; readonly at_ms: number }>();
  readonly #told = new Map<string, number>();
  #shared: ReadonlySet<number> = new Set();
  #full = false;

  constructor(parts: FleetParts) {
    this.#parts = parts;
  }

  get vehicles(): readonly Vehicle[] {
    return [...this.#vehicles.values()];
  }

  /** What the radio of the link has said lately. */
  radioOf(link: Link): Messages['RADIO_STATUS'] | undefined {
    const newest = this.#radioOf.get(link);
    return newest && performance.now() - newest.at_ms < radio_fresh_ms ? newest.report : undefined;
  }

  get #offline_after_ms(): number {
    return this.#parts.options.offline_after_s * 1_000;
  }

  /** Takes one verified frame. `now_ms` is monotonic. */
  frame(link: Link, frame: Frame, peer: string, now_ms: number): void {
    if (this.#parts.out.isEcho(frame)) return;
    const message = decode(frame);
    if (!message) return;
    const contact = this.#present(this.#contacts.find(link, peer, frame), now_ms);
    if (message.name === 'RADIO_STATUS' || message.name === 'RADIO') {
      this.#radio(message, { link, peer, contact, now_ms });
    } else if (contact) {
      this.#contact(contact, message, now_ms);
    } else if (message.name === 'HEARTBEAT' && senderOf(message.fields).is === 'autopilot') {
      const met = this.#meet({ link, peer, frame, now_ms });
      if (met) this.#contact(met, message, now_ms);
    } else {
      this.#component(message, { link, peer, frame, now_ms });
    }
  }

  tick(now_ms: number): void {
    for (const contact of this.#contacts.all) {
      contact.tick(now_ms);
      this.#identify(contact, now_ms);
      if (now_ms - contact.last_ms > this.#offline_after_ms + forget_ms) this.#drop(contact);
    }
    this.#findConflicts(now_ms);
    for (const vehicle of this.#vehicles.values()) vehicle.tick(now_ms);
    for (const part of this.#components.values()) part.tick(now_ms);
  }

  #contact(contact: Contact, message: Decoded, now_ms: number): void {
    contact.take(message, now_ms);
    if (message.name === 'AUTOPILOT_VERSION') this.#identify(contact, now_ms);
    this.#vehicleOf.get(contact)?.take(message, contact, now_ms);
  }

  #meet({ link, peer, frame, now_ms }: From): Contact | undefined {
    if (this.#contacts.all.size >= contacts_max) return this.#refuse('autopilots', contacts_max);
    const { sysid, compid } = frame;
    const { options, out } = this.#parts;
    const { streams: rates, passive } = options;
    const onText = (from: Contact, text: StatusText): void => this.#log(from, text);
    const onEvent = (from: Contact, event: VehicleEvent): void => this.#logEvent(from, event);
    const contact = new Contact({ link, peer, sysid, compid, out, rates, passive, now_ms, onText, onEvent });
    this.#contacts.add(contact);
    return contact;
  }

  /** Joins the contact to its vehicle as soon as it is known which one that is. */
  #identify(contact: Contact, now_ms: number): void {
    const known = this.#vehicleOf.get(contact);
    const is_due = contact.uid !== undefined || now_ms - contact.first_ms >= identity_wait_ms;
    if (!is_due) return;
    if (known && isKeyOf(known.asset_key, contact)) return;
    if (known) this.#leave(contact, known);
    const asset_key = this.#keyOf(contact, now_ms);
    const vehicle = this.#vehicles.get(asset_key) ?? this.#appear(asset_key, contact);
    vehicle.contacts.add(contact);
    this.#vehicleOf.set(contact, vehicle);
  }

  /** Simulators and clones share one identity: whoever has another system id at the same time is another vehicle. */
  #keyOf(contact: Contact, now_ms: number): string {
    const key = contact.asset_key;
    const other = this.#vehicles.get(key)?.active;
    const is_taken = other && other.sysid !== contact.sysid && now_ms - other.last_ms < identity_wait_ms;
    return is_taken ? cloneKeyOf(contact) : key;
  }

  #appear(asset_key: string, contact: Contact): Vehicle {
    const { host, options } = this.#parts;
    const own = options.vehicles[asset_key];
    const vehicle = new Vehicle({
      asset_key,
      contact,
      passive: options.passive,
      offline_after_ms: this.#offline_after_ms,
      describe: (active) => vehicleAsset(active, asset_key, own?.name),
      announce: (about, commands) => host.announce(about, commands),
      commandsOf: (commanded) => vehicleCommands(commanded, options, own?.commands ?? options.commands),
      log: host.log,
    });
    this.#vehicles.set(asset_key, vehicle);
    return vehicle;
  }

  #leave(contact: Contact, vehicle: Vehicle): void {
    this.#vehicleOf.delete(contact);
    vehicle.contacts.delete(contact);
    if (!vehicle.is_abandoned || !isProvisional(vehicle.asset_key)) return;
    // It was known by its system id only until its hardware told who it is.
    vehicle.remove();
    this.#vehicles.delete(vehicle.asset_key);
  }

  /** After an outage another vehicle may speak from the address, so that it has to say again who it is. */
  #present(contact: Contact | undefined, now_ms: number): Contact | undefined {
    if (!contact || now_ms - contact.last_ms < this.#offline_after_ms) return contact;
    this.#drop(contact);
    return undefined;
  }

  #drop(contact: Contact): void {
    this.#contacts.delete(contact);
    this.#vehicleOf.get(contact)?.contacts.delete(contact);
    this.#vehicleOf.delete(contact);
  }

  #component(message: Decoded, { link, peer, frame, now_ms }: From): void {
    const vehicle = this.#vehicleAt(link, peer, frame.sysid);
    if (!vehicle) return;
    // The same part, whichever link it is heard over and whatever address the vehicle has now.
    const key = `${vehicle.asset_key}.${frame.compid}`;
    const known = this.#components.get(key);
    if (known) {
      known.take(message, now_ms);
      return;
    }
    const sender = message.name === 'HEARTBEAT' ? senderOf(message.fields) : undefined;
    if (sender?.is !== 'part') return;
    if (this.#components.size >= parts_max) {
      this.#refuse('components', parts_max);
      return;
    }
    const { host, out } = this.#parts;
    const { sysid, compid } = frame;
    const part = new Part({
      parent_key: vehicle.asset_key,
      parent_name: vehicle.name,
      compid,
      part: sender.part,
      type: sender.asset,
      now_ms,
      offline_after_ms: this.#offline_after_ms,
      announce: (about) => host.announce(about),
      ask: (msgid) => out.send('COMMAND_LONG', requestMessage({ sysid, compid }, msgid), vehicle.active),
    });
    this.#components.set(key, part);
  }

  #vehicleAt(link: Link, peer: string, sysid: number): Vehicle | undefined {
    for (const contact of this.#contacts.at(link, peer)) {
      const vehicle = contact.sysid === sysid ? this.#vehicleOf.get(contact) : undefined;
      if (vehicle) return vehicle;
    }
    return undefined;
  }

  /** A radio speaks in its own name; it is the radio of all vehicles behind it. */
  #radio(
    { name, fields }: Extract<Decoded, { readonly name: 'RADIO' | 'RADIO_STATUS' }>,
    { link, peer, contact, now_ms }: Heard,
  ): void {
    this.#radioOf.set(link, { report: fields, at_ms: now_ms });
    const behind = this.vehicles.filter(({ active }) =>
      contact ? active === contact : active.link === link && active.peer === peer,
    );
    if (behind.length === 0) return;
    const place = `${link.name}|${peer}`;
    if (name === 'RADIO_STATUS') this.#radios.set(place, now_ms);
    else if (now_ms - (this.#radios.get(place) ?? Number.NEGATIVE_INFINITY) < radio_twice_ms) return;
    for (const vehicle of behind) vehicle.takeRadio(fields);
  }

  #findConflicts(now_ms: number): void {
    const { log } = this.#parts.host;
    const shared = sharedSystemIds(this.#contacts.all, (contact) => this.#vehicleOf.get(contact), now_ms);
    for (const id of shared) {
      if (!this.#shared.has(id))
        log.error({ system_id: id }, 'two vehicles have the same system id; their commands are refused');
    }
    for (const id of this.#shared) {
      if (!shared.has(id)) log.info({ system_id: id }, 'the system id belongs to one vehicle again');
    }
    this.#shared = shared;
    for (const vehicle of this.#vehicles.values()) {
      const { sysid } = vehicle.active;
      vehicle.conflict = shared.has(sysid) ? conflictText(sysid) : undefined;
    }
  }

  #log(from: Contact, { severity, text }: StatusText): void {
    const asset_key = this.#vehicleOf.get(from)?.asset_key ?? from.asset_key;
    const facts = { asset_key, severity, text };
    const { log } = this.#parts.host;
    if (severity >= severity_debug || !this.#isNews(`${asset_key} ${text}`))
      log.debug(facts, 'the vehicle says');
    else if (severity <= severity_warning) log.warn(facts, 'the vehicle warns');
    else log.info(facts, 'the vehicle says');
  }

  /** Whether this was not said within the last minute. */
  #isNews(key: string): boolean {
    const now_ms = performance.now();
    if (now_ms - (this.#told.get(key) ?? Number.NEGATIVE_INFINITY) < text_repeat_ms) return false;
    if (this.#told.size >= texts_remembered_max) this.#told.clear();
    this.#told.set(key, now_ms);
    return true;
  }

  /** PX4 says the more important ones as texts too; what they mean else, only its own file of texts knows. */
  #logEvent(from: Contact, event: VehicleEvent): void {
    const level = eventLevel(event);
    const asset_key = this.#vehicleOf.get(from)?.asset_key ?? from.asset_key;
    const facts = {
      asset_key,
      event: event.id,
      level,
      sequence: event.sequence,
      meaning: eventText(event) ?? null,
    };
    const { log } = this.#parts.host;
    if (level <= severity_warning && this.#isNews(`${asset_key} ${event.id}`))
      log.warn(facts, 'the vehicle reports an event');
    else log.debug(facts, 'the vehicle reports an event');
  }

  #refuse(what: string, limit: number): undefined {
    if (!this.#full)
      this.#parts.host.log.error(
        { what, limit },
        'more senders than this driver serves; the others are ignored',
      );
    this.#full = true;
    return undefined;
  }
}

/** Whether the asset with this key is the contact's, with or without the system id that tells clones apart. */
function isKeyOf(asset_key: string, contact: Contact): boolean {
  const key = contact.asset_key;
  return asset_key === key || asset_key === cloneKeyOf(contact);
}

function cloneKeyOf({ asset_key, sysid }: Contact): string {
  return `${asset_key}:system-${sysid}`;
}

interface From {
  readonly link: Link;
  readonly peer: string;
  readonly frame: Frame;
  readonly now_ms: number;
}

interface Heard {
  readonly link: Link;
  readonly peer: string;
  readonly contact: Contact | undefined;
  readonly now_ms: number;
}

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
