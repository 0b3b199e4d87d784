/** Finds vehicles that share a system id: a command for one could reach the other. */
import type { DriverLog } from '../../../src/toolkit/driver/driver.ts';
import { isSameHardware } from '../reports/hardware.ts';
import type { Contact } from './contact.ts';
import { texts } from './texts.ts';

const live_ms = 2_500;
const hosts_shown_max = 4;

/** Contacts whose system id another live vehicle uses as well. */
export interface SharedIds {
  /** What is sent to them may reach the other vehicle. */
  readonly confusable: ReadonlySet<Contact>;
  /** The other vehicle sends from another host, which may be a stranger's: what is sent to them does not reach it. */
  readonly apart: ReadonlySet<Contact>;
}

export function sharedIds(contacts: ReadonlySet<Contact>, now_ms: number): SharedIds {
  const confusable = new Set<Contact>();
  const apart = new Set<Contact>();
  const live = [...contacts].filter(({ last_ms }) => now_ms - last_ms < live_ms);
  for (const one of live) {
    if (one.isShared(now_ms)) confusable.add(one);
    for (const other of live) {
      if (other === one) break;
      if (other.sysid !== one.sysid) continue;
      const are_apart = areApart(one, other);
      const is_mixed = !are_apart && (one.isShared(now_ms) || other.isShared(now_ms));
      if (is_mixed || areDifferent(one, other)) (are_apart ? apart : confusable).add(one).add(other);
    }
  }
  return { confusable, apart };
}

/** Whether their addresses distinguish them. Two configured senders are own vehicles, whose radios may receive each other. */
function areApart(one: Contact, other: Contact): boolean {
  return one.source !== other.source && !(one.isNamed && other.isNamed);
}

function areDifferent(one: Contact, other: Contact): boolean {
  if (one.compid !== other.compid || !overlap(one, other)) return false;
  if (one.vehicle === undefined || other.vehicle === undefined) return false;
  // Over a satellite a vehicle reports neither.
  if (one.isHighLatency || other.isHighLatency) return one.vehicle !== other.vehicle;
  const isSame = isSameHardware(one.hardware.id, other.hardware.id);
  // Without a hardware id, a vehicle that is received from both places at once is recognised by its clock.
  return isSame === undefined ? one.clock.hasSameStart(other.clock) === false : !isSame;
}

/** Whether each was received after the first frame of the other: not one vehicle that changed its address. */
function overlap(one: Contact, other: Contact): boolean {
  return one.last_ms > other.first_ms && other.last_ms > one.first_ms;
}

/** Logs when vehicles begin and end to share a system id. */
export class SharedIdLog {
  #confusable: ReadonlySet<number> = new Set();
  #apart: ReadonlySet<number> = new Set();
  readonly #log: Pick<DriverLog, 'error' | 'warn' | 'info'>;

  constructor(log: Pick<DriverLog, 'error' | 'warn' | 'info'>) {
    this.#log = log;
  }

  note({ confusable, apart }: SharedIds): void {
    const ids = (contacts: ReadonlySet<Contact>): ReadonlySet<number> =>
      new Set([...contacts].map(({ sysid }) => sysid));
    const [now_confusable, now_apart] = [ids(confusable), ids(apart)];
    for (const system_id of now_confusable) {
      if (!this.#confusable.has(system_id)) this.#log.error({ system_id }, texts.conflict);
    }
    for (const system_id of now_apart) {
      if (this.#apart.has(system_id)) continue;
      const hosts = [...apart].filter(({ sysid }) => sysid === system_id).map(({ source }) => source);
      const addresses = hosts.slice(0, hosts_shown_max);
      this.#log.warn({ system_id, addresses }, texts.id_elsewhere(system_id));
    }
    for (const system_id of new Set([...this.#confusable, ...this.#apart])) {
      if (!now_confusable.has(system_id) && !now_apart.has(system_id))
        this.#log.info({ system_id }, texts.conflict_resolved);
    }
    this.#confusable = now_confusable;
    this.#apart = now_apart;
  }
}
