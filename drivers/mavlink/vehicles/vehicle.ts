/** One vehicle: an asset, and the contacts that receive it. One of them is active at a time. */
import type { Command } from '../../../src/toolkit/driver/command.ts';
import type { droneFeeds } from '../../../src/contract/drone-feeds.ts';
import type { AssetDescription, DriverHost, DriverLog } from '../../../src/toolkit/driver/driver.ts';
import { silenceSince } from '../../../src/platform/stalls.ts';
import { KnownSource } from '../links/known-source.ts';
import type { Link } from '../links/link.ts';
import { type Contact, isArmed } from './contact.ts';
import { radioFeed } from './feeds.ts';
import type { Decoded, Messages } from '../wire/messages.ts';
import { type Charge, type DroneSink, Publishing } from './publishing.ts';
import { flightMode } from './modes.ts';
import { type Situation, situationOf } from './situation.ts';
import { texts } from './texts.ts';
import { vehicleAsset } from './identity.ts';
import { kindOfType } from './mission-kinds.ts';
import type { CommandName, MavlinkOptions, VehicleOptions } from '../options.ts';
import { changes_rate } from './newcomers.ts';
import { TokenBucket } from '../../../src/platform/token-bucket.ts';
import { FlightLog } from './vehicle-log.ts';
import { Failsafes } from './failsafes.ts';
import { VehicleTexts } from './vehicle-texts.ts';
import { eventLevel, type VehicleEvent } from '../reports/px4-events.ts';
import type { StatusText } from '../reports/status-text.ts';
import { type HardwareId, isSameHardware } from '../reports/hardware.ts';
import { StoredMissions } from './stored-missions.ts';
import {
  type Addressee,
  isHeard,
  Changes,
  type Commanded,
  type FlightLogs,
  type LoggingVehicle,
} from './addressee.ts';

/** What all vehicles of a driver share. */
export interface VehicleHost {
  readonly host: DriverHost<typeof droneFeeds>;
  readonly options: MavlinkOptions;
  /** Makes the commands of a vehicle. */
  readonly commandsFor: (
    commanded: Commanded,
    options: MavlinkOptions,
    enabled: readonly CommandName[],
    about: Pick<Contact, 'autopilot' | 'isTelemetryOnly' | 'kind'>,
  ) => readonly Command[];
  /** Makes what transfers the flight logs of a vehicle. */
  readonly logsFor: (vehicle: LoggingVehicle) => FlightLogs;
}

interface VehicleParts {
  readonly asset_key: string;
  /** Its key without what distinguishes it from another vehicle with the same hardware id. */
  readonly hardware_key: string;
  readonly contact: Contact;
  /** The configured one. */
  readonly name: string | undefined;
  /** What is configured for it. */
  readonly own: VehicleOptions | undefined;
  /** The commands that it may have. */
  readonly enabled: readonly CommandName[];
}

/** Returns the silence after which a vehicle is offline: over a satellite it reports every minute or so. */
export function offlineAfter_ms(
  { isHighLatency }: Contact,
  { offline_after_s, high_latency_offline_after_s }: MavlinkOptions,
): number {
  return 1_000 * (isHighLatency ? high_latency_offline_after_s : offline_after_s);
}

type Sender = Pick<Contact, 'compid' | 'source' | 'sysid'>;

/** After this silence of the active contact another one of the same vehicle replaces it. */
const quiet_ms = 1_500;
/** An event that is older was requested again, or happened before the driver started. */
const event_fresh_ms = 15_000;
const untold_max = 16;

export class Vehicle {
  readonly asset_key: string;
  readonly changes = new Changes();
  readonly #stored = new StoredMissions();
  /** Restarts of its autopilot when something was last received. */
  #boots = 0;
  readonly contacts = new Set<Contact>();
  /** Set while two vehicles use its system id: only commands that make it safer are sent, perhaps to both. */
  conflict: string | undefined;
  /** Links over which what is sent may reach another vehicle with its system id. */
  confusable: ReadonlySet<Contact> = new Set();
  /** Set while a vehicle at another host, which may be a stranger, uses its system id: that prevents no command. */
  namesake: string | undefined;
  /** Set while something else is wrong around it that prevents no command. */
  warning: string | undefined;
  readonly #known = new KnownSource();
  /** Where it was last received on each link, with which ids. */
  readonly #places = new Map<Link, Pick<Contact, 'heartbeats' | 'last_ms'> & Sender>();
  /** A foreign contact was logged. */
  #hasWarned = false;
  /** Alarms that are logged. */
  #logged: readonly string[] = [];
  #hardware_id: HardwareId | undefined;
  #active: Contact;
  /** How often a sender that may be a stranger took its place, or gave it back. */
  #replacements = 0;
  #online = true;
  #lost_ms = 0;
  #online_ms = performance.now();
  #online_total_ms = 0;
  #described = '';
  readonly #changed = new TokenBucket(changes_rate);
  readonly #parts: VehicleParts;
  readonly #shared: VehicleHost;
  readonly #log: DriverLog;
  readonly #removed = new AbortController();
  readonly #logs: FlightLogs;
  readonly #sink: DroneSink;
  readonly #publishing: Publishing;
  readonly #flightLog: FlightLog;
  readonly #texts: VehicleTexts;
  readonly #failsafes: Failsafes;
  /** Events whose meaning is still being read. */
  readonly #untold: VehicleEvent[] = [];

  constructor(parts: VehicleParts, shared: VehicleHost) {
    this.#parts = parts;
    this.#shared = shared;
    this.#log = shared.host.log;
    this.asset_key = parts.asset_key;
    this.#active = parts.contact;
    this.add(parts.contact);
    this.#logs = shared.logsFor({
      asset_key: this.asset_key,
      address: () => this.#address(),
      name: () => this.name,
      signal: this.#removed.signal,
    });
    this.#sink = this.#announce();
    this.#publishing = new Publishing(this.#sink);
    this.#flightLog = new FlightLog(this.#log);
    this.#texts = new VehicleTexts(this.#sink);
    this.#failsafes = new Failsafes((failsafe) => this.#sink.publish('failsafe', failsafe));
    for (const { text, at_ms } of parts.contact.texts) this.receiveText(text, parts.contact, at_ms);
  }

  get active(): Contact {
    return this.#active;
  }

  get online(): boolean {
    return this.#online;
  }

  get isConfigured(): boolean {
    return this.#parts.own !== undefined;
  }

  /** Whether the configuration names the hosts that it sends from, so that no other is accepted. */
  get hasHosts(): boolean {
    return this.#parts.own?.hosts !== undefined;
  }

  /** Total time online. */
  get online_total_ms(): number {
    return this.#online_total_ms + (this.#online ? performance.now() - this.#online_ms : 0);
  }

  /** Time since it was lost; 0 while it is online. */
  get offline_ms(): number {
    return this.#online ? 0 : performance.now() - this.#lost_ms;
  }

  get name(): string {
    return this.#description.name;
  }

  /** What it reported last and what is wrong with its identity, for the status. */
  report(now_ms: number): {
    readonly situation: Situation;
    readonly charge: Charge | undefined;
    readonly alarms: readonly string[];
    /** The log that is being transferred. */
    readonly log: string | undefined;
  } {
    const situation = situationOf(this.#active, now_ms);
    const { progress: log } = this.#logs;
    return { situation, charge: this.#publishing.charge, alarms: this.#alarms(now_ms), log };
  }

  get hardware_key(): string {
    return this.#parts.hardware_key;
  }

  /** The hardware that it was last known to be; undefined if it has not reported it. */
  get hardware_id(): HardwareId | undefined {
    return this.#hardware_id;
  }

  /** Takes over what a contact knows of its hardware. */
  learn({ hardware }: Contact): void {
    // Another vehicle may have replaced it behind the same radio.
    if (isSameHardware(this.#hardware_id, hardware.id) !== false)
      this.#hardware_id = hardware.id ?? this.#hardware_id;
  }

  /** Adds a contact that receives it. */
  add(contact: Contact): void {
    this.contacts.add(contact);
    this.learn(contact);
    if (!this.hasHosts) this.#known.add(contact);
  }

  /** Takes a contact for its own after a silence, until that is confirmed. */
  presume(contact: Contact, now_ms: number): void {
    contact.assume(this.hardware_key);
    contact.isPresumed = true;
    this.add(contact);
    this.#switch(now_ms);
  }

  /** When it was last received from there, with the same ids, and the heartbeats there; undefined if it was not. */
  lastAt({ link, source, sysid, compid }: Pick<Contact, 'link'> & Sender) {
    const last = this.#places.get(link);
    const isSame = last?.source === source && last.sysid === sysid && last.compid === compid;
    return isSame ? last : undefined;
  }

  /** Whether a contact may be a stranger: another source than those known of the vehicle, which its own do not use. */
  isForeign(contact: Contact): boolean {
    return this.#known.isForeign(contact);
  }

  /** Whether no contact is left. */
  get isAbandoned(): boolean {
    return this.contacts.size === 0;
  }

  receive(message: Decoded, contact: Contact, now_ms: number): void {
    if (contact !== this.#active) {
      // What another link shows may complete a command.
      this.changes.notify();
      return;
    }
    if (!this.#online) this.#goOnline();
    if (message.name === 'HEARTBEAT') {
      contact.streams?.request('cameras');
      this.#publishStatus(message.fields, now_ms);
    } else if (message.name === 'HIGH_LATENCY2') this.#publishHighLatency(message.fields, contact, now_ms);
    else this.#publishing.receive(message, contact, now_ms);
    if (contact.boots !== this.#boots) this.#restarted(contact);
    this.#failsafes.receive(message, contact, now_ms);
    this.#receiveMission(message, contact, now_ms);
    if (isDescribing(message)) this.#announceIfChanged(now_ms);
    this.changes.notify();
  }

  /** A text of the autopilot, over any link of its own. */
  receiveText(text: StatusText, contact: Contact, now_ms: number): void {
    if (contact !== this.#active && this.isForeign(contact)) return;
    // The event says the same, with its values.
    if (!(text.isEvent === true && contact.metadata)) this.#texts.receive(text, contact.link, now_ms);
    this.#failsafes.text(text);
  }

  /** A text of one of its components, which shows no failsafe of the vehicle. */
  receivePartText(text: StatusText, link: Link, now_ms: number): void {
    this.#texts.receive(text, link, now_ms);
  }

  /** An event that has just happened: those from before the driver started are received too. */
  receiveEvent(event: VehicleEvent, contact: Contact, now_ms: number): void {
    const { booted_at_ms = now_ms } = contact;
    if (now_ms - booted_at_ms - event.event_time_boot_ms > event_fresh_ms) return;
    if (contact !== this.#active && this.isForeign(contact)) return;
    this.#failsafes.begin(contact.events.failsafesOf(event), null);
    this.#untold.push(event);
    if (this.#untold.length > untold_max) this.#untold.shift();
    this.#tellEvents(contact, now_ms);
  }

  /** Publishes what events mean, once that was read from the vehicle. */
  #tellEvents({ metadata, events, link }: Contact, now_ms: number): void {
    if (!metadata) return;
    for (const event of this.#untold.splice(0)) {
      const text = metadata.textOf(event);
      if (text === undefined) continue;
      if (metadata.isShown(event)) this.#texts.receive({ severity: eventLevel(event), text }, link, now_ms);
      this.#failsafes.begin(events.failsafesOf(event), text);
    }
  }

  #restarted({ boots }: Contact): void {
    this.#boots = boots;
    this.#stored.forget();
    this.#untold.length = 0;
    this.#failsafes.restart();
  }

  /** A transfer with another station may have changed what is stored. */
  #receiveMission({ name, fields }: Decoded, contact: Contact, now_ms: number): void {
    if (name === 'MISSION_REQUEST' || name === 'MISSION_REQUEST_INT' || name === 'MISSION_ACK') {
      if (!contact.isToUs(fields)) this.#stored.forget(kindOfType(fields.mission_type));
    } else if (name === 'MISSION_CURRENT' || name === 'MISSION_ITEM_REACHED') {
      if (name === 'MISSION_CURRENT') this.#stored.receive(fields, contact.autopilot, now_ms);
      else this.#stored.reached(fields.seq, contact.autopilot);
      const feed = this.#stored.feed();
      if (feed) this.#sink.publish('mission', feed);
    }
  }

  #publishStatus(heartbeat: Messages['HEARTBEAT'], now_ms: number): void {
    const conflict = this.#conflictAt(now_ms);
    const alarms = this.#alarms(now_ms);
    this.#publishing.status(heartbeat, this.#active, { now_ms, alarms });
    const { autopilot, kind, modes: offered } = this.#active;
    const mode = flightMode(autopilot, kind, { ...heartbeat, offered });
    const { asset_key, name } = this;
    if (conflict !== undefined) return;
    const armed = isArmed(heartbeat);
    const before = this.#flightLog.note({ armed, mode }, { asset_key, name });
    if (before?.armed !== armed) void this.#logs.armed(armed);
  }

  #alarms(now_ms: number): readonly string[] {
    const { source } = this.#active;
    const foreign = this.isForeign(this.#active) ? texts.address_changed(source) : undefined;
    const alien = this.#alienAt(now_ms);
    const all = [this.#conflictAt(now_ms), foreign, this.namesake, alien, this.#deaf, this.warning];
    return all.filter((each) => each !== undefined);
  }

  /** Why heartbeats under its ids are ignored. */
  #alienAt(now_ms: number): string | undefined {
    const { sysid, compid } = this.#active;
    return this.#active.heartbeats.hasAlien(now_ms) ? texts.alien_heartbeats(sysid, compid) : undefined;
  }

  /** Why no command may reach it: it accepts another ground station only, or its link carries one direction (QGroundControl#10682). */
  get #deaf(): string | undefined {
    return this.#active.isDeaf ? texts.deaf : undefined;
  }

  #logAlarms(now_ms: number): void {
    const present = [this.#alienAt(now_ms), this.#deaf].filter((each) => each !== undefined);
    for (const alarm of present) {
      if (!this.#logged.includes(alarm))
        this.#log.warn({ asset_key: this.asset_key, name: this.name }, alarm);
    }
    this.#logged = present;
  }

  #publishHighLatency(report: Messages['HIGH_LATENCY2'], contact: Contact, now_ms: number): void {
    if (!contact.isHighLatency) return;
    const alarms = this.#alarms(now_ms);
    this.#publishing.highLatency(report, contact, { now_ms, alarms });
  }

  /** Publishes a report of the radio of its link. */
  receiveRadio(radio: Messages['RADIO_STATUS']): void {
    if (this.#online) this.#sink.publish('radio', radioFeed(radio));
  }

  tick(now_ms: number): void {
    this.#known.tick(this.contacts, this.#active, now_ms);
    this.#notePlaces();
    this.#switch(now_ms);
    this.#logAlarms(now_ms);
    this.#tellEvents(this.#active, now_ms);
    if (this.#online) this.#checkSilence(now_ms);
    this.changes.notify();
  }

  #notePlaces(): void {
    for (const contact of this.contacts) {
      const { link, source, sysid, compid, last_ms, heartbeats, isPresumed } = contact;
      if (isPresumed || this.isForeign(contact)) continue;
      this.#places.set(link, { source, sysid, compid, last_ms, heartbeats });
    }
  }

  /**
   * Makes the most recent live contact active when the present one is silent. A foreign one is used only while the vehicle is lost
   * otherwise: its telemetry and its answers would complete commands that the vehicle has never received.
   */
  #switch(now_ms: number): void {
    if (this.contacts.size === 1 && this.contacts.has(this.#active)) return;
    const alive = [...this.contacts].filter((contact) => now_ms - contact.last_ms < quiet_ms);
    const newest = alive.toSorted((a, b) => b.last_ms - a.last_ms);
    const [best] = newest.toSorted((a, b) => this.#doubtOf(a) - this.#doubtOf(b));
    if (!best) return;
    const foreign = newest.find((contact) => this.isForeign(contact));
    if (foreign && !this.isForeign(best)) this.#warnOnce(foreign);
    const isQuiet =
      silenceSince(this.#active.last_ms, now_ms) >= quiet_ms || !this.contacts.has(this.#active);
    if (!isQuiet && this.#doubtOf(best) >= this.#doubtOf(this.#active)) return;
    if (this.isForeign(best) && this.#online) return;
    if (best !== this.#active) this.#use(best);
  }

  /** How much doubt there is that a contact is the vehicle: what is its own and confirmed is used rather than anything else. */
  #doubtOf(contact: Contact): number {
    if (this.isForeign(contact)) return 2;
    return contact.isPresumed || contact.isDeaf ? 1 : 0;
  }

  #use(next: Contact): void {
    const { asset_key, name } = this;
    const more = { asset_key, name, address: next.source, before: this.#active.source };
    if (this.isForeign(next)) this.#log.warn(more, texts.address_changed(next.source));
    else if (this.isForeign(this.#active)) this.#log.info(more, texts.address_known_again);
    if (this.isForeign(next) || this.isForeign(this.#active)) this.#replacements += 1;
    if (next.sysid !== this.#active.sysid) {
      const ids = { system_id: next.sysid, before: this.#active.sysid };
      this.#log.info({ asset_key, name, ...ids }, texts.system_id_changed);
    }
    next.unanswered.adopt(this.#active.unanswered);
    this.#active = next;
  }

  #warnOnce({ source }: Contact): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const { asset_key, name } = this;
    this.#log.warn({ asset_key, name, address: source }, texts.address_ignored);
  }

  #checkSilence(now_ms: number): void {
    const { link, last_ms } = this.#active;
    const silence_ms = silenceSince(last_ms, now_ms);
    if (this.isAbandoned) this.#goOffline(texts.address_reused);
    else if (silence_ms >= offlineAfter_ms(this.#active, this.#shared.options)) {
      this.#goOffline(texts.silent(Math.round(silence_ms / 1_000), link.name));
    }
  }

  #goOffline(reason: string): void {
    this.#online = false;
    this.#lost_ms = performance.now();
    this.#online_total_ms += this.#lost_ms - this.#online_ms;
    this.#sink.setOnline(false, reason);
    this.#log.warn({ asset_key: this.asset_key, name: this.name, reason }, texts.went_offline(this.#type));
  }

  /** The asset type as announced, so that all log lines agree. */
  get #type(): string {
    return this.#description.type;
  }

  remove(): void {
    this.#removed.abort();
    this.#sink.remove();
  }

  #goOnline(): void {
    this.#online = true;
    this.#online_ms = performance.now();
    this.#sink.setOnline(true);
    const down_s = Math.round((performance.now() - this.#lost_ms) / 1_000);
    this.#log.info({ asset_key: this.asset_key, name: this.name, down_s }, texts.back_online(this.#type));
  }

  #address(): ReturnType<Commanded['address']> {
    const now_ms = performance.now();
    if (!this.#online) return { obstacle: texts.offline(this.name) };
    return { to: this.#addressee(), situation: situationOf(this.#active, now_ms) };
  }

  /** Its links change while a command is executed. */
  #addressee(): Addressee {
    const active = (): Contact => this.#active;
    const links = (): readonly Contact[] => this.#links();
    return {
      name: this.name,
      get contact() {
        return active();
      },
      get contacts() {
        return links();
      },
      changes: this.changes,
      watchStart: () => this.#watchStart(),
      conflict: () => this.#conflictAt(performance.now()),
    };
  }

  /** The link in use, and all others of its own that are alive. Over a satellite a copy would arrive a minute late. */
  #links(): readonly Contact[] {
    const now_ms = performance.now();
    const active = this.#active;
    if (this.isForeign(active)) return [active];
    const others = [...this.contacts].filter(
      (each) =>
        each !== active &&
        isHeard(each) &&
        !each.isHighLatency &&
        !each.isPresumed &&
        !each.isShared(now_ms) &&
        !this.confusable.has(each) &&
        !this.isForeign(each),
    );
    return [active, ...others];
  }

  #watchStart(): () => boolean {
    const replacements = this.#replacements;
    const start = new SameStart(this.#links(), performance.now());
    return () => this.#replacements !== replacements || start.isOver(this.#links());
  }

  /** Also checks the contact: a command may arrive before the registry has detected a second vehicle. */
  #conflictAt(now_ms: number): string | undefined {
    return this.conflict ?? this.#mixtureAt(now_ms);
  }

  #mixtureAt(now_ms: number): string | undefined {
    return this.#active.isShared(now_ms) ? texts.id_shared(this.#active.sysid) : undefined;
  }

  #announce(): DroneSink {
    this.#described = this.#announced;
    return this.#shared.host.announce(this.#description, this.#commands);
  }

  get #commands(): readonly Command[] {
    const { commandsFor, options } = this.#shared;
    if (options.passive) return [];
    const commanded = {
      address: () => this.#address(),
      conflict: () =>
        this.#conflictAt(performance.now()) ??
        (this.#active.isPresumed ? texts.identity_unconfirmed : undefined),
      mixture: () => this.#mixtureAt(performance.now()),
      stored: this.#stored,
      logs: this.#logs,
    };
    return commandsFor(commanded, options, this.#parts.enabled, this.#active);
  }

  get #description(): AssetDescription {
    const { contact, name } = this.#parts;
    return vehicleAsset(this.#active, this.asset_key, { name, sysid: contact.sysid });
  }

  /** What it is, and on what its commands depend: a quadplane, or an iNav, may be known for one late. */
  get #announced(): string {
    const { autopilot, kind, isTelemetryOnly } = this.#active;
    return JSON.stringify([this.#description, autopilot, kind, isTelemetryOnly]);
  }

  /** Announces the asset again when its description has changed; the sink stays valid. */
  #announceIfChanged(now_ms: number): void {
    if (this.#announced !== this.#described && this.#changed.take(now_ms)) this.#announce();
  }
}

/** Whether the description of the asset may have changed. */
function isDescribing({ name }: Decoded): boolean {
  return name === 'AUTOPILOT_VERSION' || name === 'HEARTBEAT' || name === 'HIGH_LATENCY2';
}

// Whether an autopilot has restarted since, over whichever links it is received: another link is no restart.

/** The clock of one start may seem this much later over a slower link. */
const latency_max_ms = 2_000;

export class SameStart {
  readonly #since_ms: number;
  readonly #boots: ReadonlyMap<Contact, number>;
  /** Undefined: it sends no clock. */
  readonly #booted_at_ms: number | undefined;

  /** `now_ms` is monotonic. */
  constructor(contacts: readonly Contact[], now_ms: number) {
    this.#since_ms = now_ms;
    this.#boots = new Map(contacts.map((contact) => [contact, contact.boots]));
    const starts = contacts.flatMap(({ booted_at_ms }) => booted_at_ms ?? []);
    this.#booted_at_ms = starts.length > 0 ? Math.max(...starts) : undefined;
  }

  /** Whether one of the links shows another start. */
  isOver(contacts: readonly Contact[]): boolean {
    return contacts.some((contact) => this.#isOther(contact));
  }

  #isOther(contact: Contact): boolean {
    const boots = this.#boots.get(contact);
    if (boots !== undefined) return contact.boots !== boots;
    // A new link may be that of an autopilot that has restarted; only its clock tells.
    const { booted_at_ms } = contact;
    if (this.#booted_at_ms === undefined) return true;
    if (booted_at_ms === undefined) return false;
    // Another vehicle behind the same radio may have started earlier.
    if (contact.isPresumed && this.#booted_at_ms - booted_at_ms > latency_max_ms) return true;
    return booted_at_ms > this.#since_ms || booted_at_ms - this.#booted_at_ms > latency_max_ms;
  }
}
