/** One vehicle: an asset, and the contacts over which it is heard. One of them speaks for it at a time. */
import type { Command } from '../../src/driver/command.ts';
import type { AssetDescription, DriverLog } from '../../src/driver/driver.ts';
import type { Contact } from './contact.ts';
import { radioFeed } from './feeds.ts';
import type { Decoded, Messages } from './messages.ts';
import { type DroneSink, Publishing } from './publishing.ts';
import { situationOf } from './situation.ts';
import type { Commanded } from './commands.ts';
import { Changes } from './watch.ts';

export interface VehicleParts {
  readonly asset_key: string;
  readonly contact: Contact;
  readonly passive: boolean;
  readonly offline_after_ms: number;
  /** Announces the asset; again when more is known of it. */
  readonly announce: (about: AssetDescription, commands: readonly Command[]) => DroneSink;
  readonly commandsOf: (vehicle: Commanded) => readonly Command[];
  readonly describe: (active: Contact) => AssetDescription;
  readonly log: Pick<DriverLog, 'info' | 'warn'>;
}

/** Why nothing is sent to a vehicle that is not alone with its system id. */
export function conflictText(sysid: number): string {
  return `system id ${sysid} is used by two vehicles at once; give each of them its own`;
}

/** A contact that is silent for this long gives way to another one of the same vehicle. */
const quiet_ms = 1_500;

export class Vehicle {
  readonly asset_key: string;
  readonly changes = new Changes();
  readonly contacts = new Set<Contact>();
  /** Why nothing may be sent to it and nothing it says may be trusted to be its own: two vehicles with one id. */
  conflict: string | undefined;
  #active: Contact;
  #switches = 0;
  #online = true;
  #lost_ms = 0;
  #described = '';
  readonly #parts: VehicleParts;
  readonly #commands: readonly Command[];
  readonly #sink: DroneSink;
  readonly #publishing: Publishing;

  constructor(parts: VehicleParts) {
    this.#parts = parts;
    this.asset_key = parts.asset_key;
    this.#active = parts.contact;
    this.contacts.add(parts.contact);
    this.#commands = parts.passive ? [] : parts.commandsOf({ address: () => this.#address() });
    this.#sink = this.#announce();
    this.#publishing = new Publishing(this.#sink);
  }

  get active(): Contact {
    return this.#active;
  }

  get online(): boolean {
    return this.#online;
  }

  get name(): string {
    return this.#parts.describe(this.#active).name;
  }

  /** Whether nobody speaks for it any more. */
  get is_abandoned(): boolean {
    return this.contacts.size === 0;
  }

  take(message: Decoded, contact: Contact, now_ms: number): void {
    if (contact !== this.#active) return;
    if (!this.#online) this.#comeBack();
    if (message.name === 'HEARTBEAT') this.#publishStatus(message.fields, now_ms);
    else if (!contact.isShared(now_ms)) this.#publishing.take(message, contact, now_ms);
    if (message.name === 'AUTOPILOT_VERSION' || message.name === 'HEARTBEAT') this.#announceIfNew();
    this.changes.tell();
  }

  #publishStatus(heartbeat: Messages['HEARTBEAT'], now_ms: number): void {
    const conflict = this.#conflictAt(now_ms);
    const alarms = conflict === undefined ? [] : [conflict];
    if (this.#active.isShared(now_ms)) this.#publishing.warn(alarms);
    else this.#publishing.status(heartbeat, this.#active, { now_ms, alarms });
  }

  /** The radio of the link over which the vehicle is heard. */
  takeRadio(radio: Messages['RADIO_STATUS']): void {
    if (this.#online) this.#sink.publish('radio', radioFeed(radio));
  }

  tick(now_ms: number): void {
    const is_quiet = now_ms - this.#active.last_ms >= quiet_ms;
    if (is_quiet || !this.contacts.has(this.#active)) this.#switch(now_ms);
    if (this.#online) this.#noticeSilence(now_ms);
    this.changes.tell();
  }

  /** Another contact speaks for it from now on, if there is one. */
  #switch(now_ms: number): void {
    const alive = [...this.contacts].filter((contact) => now_ms - contact.last_ms < quiet_ms);
    const [newest] = alive.toSorted((a, b) => b.last_ms - a.last_ms);
    if (!newest) return;
    this.#active = newest;
    this.#switches += 1;
  }

  #noticeSilence(now_ms: number): void {
    const { link, last_ms } = this.#active;
    const silence_ms = now_ms - last_ms;
    if (this.is_abandoned) this.#goOffline('another vehicle speaks from its address');
    else if (silence_ms >= this.#parts.offline_after_ms) {
      this.#goOffline(`nothing was heard for ${Math.round(silence_ms / 1_000)} s over ${link.name}`);
    }
  }

  #goOffline(reason: string): void {
    this.#online = false;
    this.#lost_ms = performance.now();
    this.#sink.setOnline(false, reason);
    this.#parts.log.warn({ asset_key: this.asset_key, name: this.name, reason }, 'vehicle is offline');
  }

  remove(): void {
    this.#sink.remove();
  }

  #comeBack(): void {
    this.#online = true;
    this.#sink.setOnline(true);
    const down_s = Math.round((performance.now() - this.#lost_ms) / 1_000);
    this.#parts.log.info({ asset_key: this.asset_key, name: this.name, down_s }, 'vehicle is online again');
  }

  #address(): ReturnType<Commanded['address']> {
    const now_ms = performance.now();
    if (!this.#online) return { obstacle: `${this.name} is offline` };
    const conflict = this.#conflictAt(now_ms);
    if (conflict !== undefined) return { obstacle: `${this.name}: ${conflict}` };
    const contact = this.#active;
    return {
      to: {
        name: this.name,
        contact,
        changes: this.changes,
        incarnation: () => `${this.#switches}.${contact.boots}`,
      },
      situation: situationOf(contact, now_ms),
    };
  }

  /** Also before the fleet has looked: a command may come in the very moment in which a second vehicle shows. */
  #conflictAt(now_ms: number): string | undefined {
    const { sysid } = this.#active;
    return this.conflict ?? (this.#active.isShared(now_ms) ? conflictText(sysid) : undefined);
  }

  #announce(): DroneSink {
    const about = this.#parts.describe(this.#active);
    this.#described = JSON.stringify(about);
    return this.#parts.announce(about, this.#commands);
  }

  /** What it says of itself may have become known only now; the sink stays the same asset's. */
  #announceIfNew(): void {
    if (JSON.stringify(this.#parts.describe(this.#active)) !== this.#described) this.#announce();
  }
}
