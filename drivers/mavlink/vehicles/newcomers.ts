/**
 * Limits for new senders. On an open network anyone can send heartbeats of ever new vehicles: each source has a limit,
 * a sender seen once is dropped soon, and a vehicle that was online for a while keeps its slot.
 */
import { silenceSince } from '../../../src/platform/stalls.ts';
import type { Contact } from './contact.ts';
import type { Vehicle } from './vehicle.ts';

/** Autopilots that are tracked at the same time. */
export const contacts_max = 128;
/** Autopilots of one source: an address without its port, or a serial line. A radio or a router may forward a swarm. */
export const source_contacts_max = 32;
/** Vehicles of one driver, including offline ones. */
export const vehicles_max = 64;
/** An unknown autopilot must send two heartbeats at least this far apart before it is announced. */
const confirm_after_ms = 500;
const clone_silence_ms = 5_000;
/** An autopilot that was never announced is dropped after this silence. */
export const unannounced_silence_ms = 5_000;
/** A vehicle that was online for this long is established: it keeps its slot while it is offline. */
const established_after_ms = 60_000;

/** Vehicles announced in a minute; configured ones do not count. */
export const appearances_max = 64;
export const appearances_window_ms = 60_000;
/** Minimum interval between accepted changes of an autopilot's hardware id. */
export const identity_every_ms = 5_000;
/** A vehicle that is not established is removed this long after it was lost. */
export const remove_after_ms = 600_000;

/** Whether an id of the sender addresses all vehicles or all components: a command to it would be for each of them. */
export function isForAll({ sysid, compid }: Pick<Contact, 'compid' | 'sysid'>): boolean {
  return sysid === 0 || compid === 0;
}

/** Whether another system id has the same hardware id and is received now, as with simulators and clones: then they are two vehicles. */
export function isTaken(
  other: Contact | undefined,
  { sysid }: Pick<Contact, 'sysid'>,
  now_ms: number,
): boolean {
  return (
    other !== undefined && other.sysid !== sysid && silenceSince(other.last_ms, now_ms) < clone_silence_ms
  );
}

/** Returns the peer without its UDP or TCP port: a host with many ports is one source. */
function sourceOf(peer: string): string {
  return peer.replace(/:\d+$/u, '');
}

export function isConfirmed({ beats, first_ms, last_ms, isHighLatency }: Contact): boolean {
  // The next message over a satellite may be minutes away.
  if (isHighLatency) return true;
  return beats >= 2 && last_ms - first_ms >= confirm_after_ms;
}

/** Whether it keeps its slot while it is offline. */
export function isEstablished({ online_total_ms, isConfigured }: Vehicle): boolean {
  return isConfigured || online_total_ms >= established_after_ms;
}

export interface Roles {
  readonly isVehicle: (contact: Contact) => boolean;
  /** Whether its vehicle is served through it, and not only received by it too. */
  readonly isActive: (contact: Contact) => boolean;
}

/**
 * Whether a slot is free or can be freed. A full source gives up an autopilot without a vehicle. If all slots are taken, the source
 * with the most of them gives one up, so that hosts with many invented autopilots displace one another and not a lone one.
 */
export function slotFor(
  { link, peer }: Pick<Contact, 'link' | 'peer'>,
  contacts: ReadonlySet<Contact>,
  { isVehicle, isActive }: Roles,
): { readonly hasSlot: boolean; readonly victim: Contact | undefined } {
  const source = sourceOf(peer);
  const own = [...contacts].filter((each) => each.link === link && sourceOf(each.peer) === source);
  const isSourceFull = own.length >= source_contacts_max;
  if (!isSourceFull && contacts.size < contacts_max) return { hasSlot: true, victim: undefined };
  const spare = isSourceFull ? own : ofLargestSource([...contacts].filter((each) => !isActive(each)));
  const oldest = spare.toSorted((a, b) => a.last_ms - b.last_ms);
  const unannounced = oldest.find((each) => !isVehicle(each));
  const victim = unannounced ?? (isSourceFull ? undefined : oldest[0]);
  return { hasSlot: victim !== undefined, victim };
}

function ofLargestSource(contacts: readonly Contact[]): readonly Contact[] {
  const sources = Map.groupBy(contacts, ({ link, peer }) => `${link.name} ${sourceOf(peer)}`);
  return [...sources.values()].reduce((a, b) => (b.length > a.length ? b : a), []);
}
