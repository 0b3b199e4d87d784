/**
 * Limits for new senders. On an open network anyone can send heartbeats of ever new vehicles: each source has a limit,
 * a sender seen once is dropped soon, and a vehicle that was online for a while keeps its slot.
 */
import { SeenRecently } from '../../../src/platform/seen-recently.ts';
import { silenceSince } from '../../../src/platform/stalls.ts';
import type { Rate } from '../../../src/platform/token-bucket.ts';
import { type Contact, sourceOf } from './contact.ts';

/** Autopilots that are tracked at the same time. */
export const contacts_max = 128;
/** Autopilots of one source: an address without its port, or a serial line. A router may forward a swarm: as many as vehicles (mavlink#2310, qgroundcontrol#7225). */
export const source_contacts_max = 64;
/** Vehicles of one driver, including offline ones. */
export const vehicles_max = 64;
/** An unknown autopilot must send two heartbeats at least this far apart before it is announced. */
const confirm_after_ms = 500;
/** An autopilot that sends a heartbeat each second is not silent for longer, unless one is lost. */
const beat_pause_max_ms = 1_500;
/** Time in which an autopilot that sends steadily answers who it is. */
const identified_after_ms = 5_000;
/** Heartbeats of a sender that waits for a slot. */
const steady_beats = 4;
/** Senders that wait for a slot: more than a flood of invented ones brings between two heartbeats of a real one. */
const waiting_max = 4_096;
/** A system id that was changed is silent afterwards, on a radio that loses two heartbeats too. */
const gone_silence_ms = 3_000;
/** A router may deliver the last frames of the former system id so much later. */
const late_max_ms = 1_000;
/** An autopilot that was never announced is dropped after this silence. */
export const unannounced_silence_ms = 5_000;
/** A vehicle that was online for this long is established: it keeps its slot while it is offline. */
const established_after_ms = 60_000;

/** Vehicles announced in a minute; configured ones do not count. */
const appearances_max = 64;
const appearances_window_ms = 60_000;
/** Minimum interval between accepted changes of an autopilot's hardware id. */
export const identity_every_ms = 5_000;
/** A vehicle that is not established is removed this long after it was lost. */
export const remove_after_ms = 600_000;

// Announcements: strangers must neither fill the uplink nor hold up the event loop with them.

/** Of an asset that describes itself otherwise with each message. */
export const changes_rate: Rate = { perSecond: 0.1, burst: 6 };
/** Of new vehicles: one takes some milliseconds, and those of a flood become known in the same turn. */
export const appearing_rate: Rate = { perSecond: 40, burst: 4 };
/** Of new components of all vehicles. A component that has to wait is announced after its next heartbeat. */
export const parts_appearing_rate: Rate = { perSecond: 160, burst: 16 };

/** Whether an id of the sender addresses all vehicles or all components: a command to it would be for each of them. */
export function isForAll({ sysid, compid }: Pick<Contact, 'compid' | 'sysid'>): boolean {
  return sysid === 0 || compid === 0;
}

/**
 * Whether hardware that is received with a new system id is the vehicle that had another one, which then is silent, or a second
 * vehicle with the same hardware id, as with simulators; undefined until that shows.
 */
export function isMoved(
  from: Contact | undefined,
  { sysid, first_ms }: Pick<Contact, 'sysid' | 'first_ms'>,
  now_ms: number,
): boolean | undefined {
  if (from === undefined || from.sysid === sysid) return true;
  if (from.last_ms - first_ms > late_max_ms) return silenceSince(from.last_ms, now_ms) >= gone_silence_ms;
  return silenceSince(from.last_ms, now_ms) >= gone_silence_ms ? true : undefined;
}

export function isConfirmed({ beats, first_ms, last_ms, isHighLatency }: Contact): boolean {
  // The next message over a satellite may be minutes away.
  if (isHighLatency) return true;
  return beats >= 2 && last_ms - first_ms >= confirm_after_ms;
}

/** A vehicle, as far as its slot depends on it. */
interface SlotHolder {
  readonly isConfigured: boolean;
  readonly online: boolean;
  readonly online_total_ms: number;
  readonly offline_ms: number;
}

/** Whether it keeps its slot while it is offline. */
export function isEstablished({ online_total_ms, isConfigured }: SlotHolder): boolean {
  return isConfigured || online_total_ms >= established_after_ms;
}

/** A configured vehicle always has one. */
export const configured_slot = { hasSlot: true, victim: undefined } as const;

/** Slots for vehicles that are not configured. */
export class VehicleSlots {
  #appearances_ms: readonly number[] = [];

  /** Whether one more may appear, and which one must be removed for it: one that is offline and was online only briefly. */
  slotFor<T extends SlotHolder>(
    vehicles: readonly T[],
    now_ms: number,
  ): { readonly hasSlot: boolean; readonly victim: T | undefined } {
    const recent = this.#appearances_ms.filter((at_ms) => now_ms - at_ms < appearances_window_ms);
    const unconfigured = vehicles.filter(({ isConfigured }) => !isConfigured);
    const offline = unconfigured.filter((each) => !each.online && !isEstablished(each));
    const [longest] = offline.toSorted((a, b) => b.offline_ms - a.offline_ms);
    const victim = unconfigured.length >= vehicles_max ? longest : undefined;
    const isFull = unconfigured.length >= vehicles_max && !victim;
    const hasSlot = recent.length < appearances_max && !isFull;
    this.#appearances_ms = hasSlot ? [...recent, now_ms] : recent;
    return { hasSlot, victim: hasSlot ? victim : undefined };
  }
}

/** A message of a sender that could be another autopilot. */
export interface Newcomer extends Pick<Contact, 'link' | 'peer'> {
  readonly frame: Pick<Contact, 'compid' | 'sysid'>;
  readonly now_ms: number;
}

/** Distributes the slots for autopilots. While all are taken, only a sender that sends steadily gets one. */
export class Slots {
  /** Senders without a slot, by key. */
  readonly #waiting = new SeenRecently<string, Wait>({ keep_ms: unannounced_silence_ms, max: waiting_max });
  /** Gets the next slot: a flood of others takes none before it, unless it has gone silent. */
  #next: Wait | undefined;

  /**
   * Whether a slot is free or can be freed. A full source gives up an autopilot without a vehicle. If all slots are taken, the
   * source with the most of them gives one up, so that hosts with many invented autopilots displace one another and not a lone
   * one.
   */
  slotFor(
    from: Newcomer,
    contacts: ReadonlySet<Contact>,
  ): { readonly hasSlot: boolean; readonly victim: Contact | undefined; readonly limit: number } {
    const source = sourceOf(from.peer);
    const own = [...contacts].filter((each) => each.link === from.link && each.source === source);
    const isSourceFull = own.length >= source_contacts_max;
    const limit = isSourceFull ? source_contacts_max : contacts_max;
    if (!isSourceFull && contacts.size < contacts_max) return { hasSlot: true, victim: undefined, limit };
    // The next message of a satellite modem may be minutes away.
    const wait = from.link.high_latency ? undefined : this.#wait(from);
    if (wait && !this.#isNext(wait)) return { hasSlot: false, victim: undefined, limit };
    // Of the others those by which a vehicle is not served, but only received too.
    const spare = isSourceFull ? own : [...contacts].filter((each) => each.vehicle?.active !== each);
    const unannounced = spare.filter(({ vehicle }) => vehicle === undefined);
    const mayTakeVehicle = !isSourceFull && unannounced.length === 0;
    const victim = mayTakeVehicle
      ? oldest(ofLargestSource(spare))
      : unannouncedVictim(unannounced, from.now_ms);
    if (wait) this.#next = victim ? undefined : wait;
    return { hasSlot: victim !== undefined, victim, limit };
  }

  /** Notes a sender that waits for a slot. */
  #wait({ link, peer, frame, now_ms }: Newcomer): Wait {
    const key = `${link.name} ${peer} ${frame.sysid} ${frame.compid}`;
    const seen = this.#waiting.get(key, now_ms);
    if (seen && now_ms - seen.at_ms < confirm_after_ms) return seen;
    const wait = { key, beats: (seen?.beats ?? 0) + 1, at_ms: now_ms };
    this.#waiting.note(key, wait, now_ms);
    return wait;
  }

  /** Whether it sends steadily, and no other sender that does has waited longer. */
  #isNext({ key, beats, at_ms }: Wait): boolean {
    const next = this.#next;
    const isBehind =
      next !== undefined && key !== next.key && beats <= next.beats && at_ms - next.at_ms < beat_pause_max_ms;
    return beats >= steady_beats && !isBehind;
  }
}

/** `beats`: one for each usual pause between two heartbeats. `at_ms`: of the latest of them. */
interface Wait {
  readonly key: string;
  readonly beats: number;
  readonly at_ms: number;
}

/** An autopilot that has gone silent, else any that has had time to be identified. */
function unannouncedVictim(unannounced: readonly Contact[], now_ms: number): Contact | undefined {
  const silent = unannounced.filter(({ last_ms }) => silenceSince(last_ms, now_ms) > beat_pause_max_ms);
  if (silent.length > 0) return oldest(silent);
  return oldest(
    ofLargestSource(unannounced.filter(({ first_ms }) => now_ms - first_ms > identified_after_ms)),
  );
}

function oldest(contacts: readonly Contact[]): Contact | undefined {
  return contacts.toSorted((a, b) => a.last_ms - b.last_ms)[0];
}

function ofLargestSource(contacts: readonly Contact[]): readonly Contact[] {
  const sources = Map.groupBy(contacts, ({ link, source }) => `${link.name} ${source}`);
  return [...sources.values()].reduce((a, b) => (b.length > a.length ? b : a), []);
}
