/** Finds vehicles that share a system id: a command for one would reach the other. */
import type { DriverLog } from '../../../src/driver/driver.ts';
import type { Link } from '../links/link.ts';
import type { Contact } from './contact.ts';
import { texts } from './texts.ts';
import type { Vehicle } from './vehicle.ts';

const live_ms = 2_500;
/** Boot times of one autopilot received over two links differ by the delays of the links. */
const same_boot_ms = 2_000;
/** Of `time_boot_ms`. */
const clock_range_ms = 2 ** 32;

/** Returns the system ids that two live vehicles use. */
export function sharedSystemIds(
  contacts: ReadonlySet<Contact>,
  vehicleOf: (contact: Contact) => Vehicle | undefined,
  now_ms: number,
): ReadonlySet<number> {
  const shared = new Set<number>();
  const isLive = ({ last_ms }: Contact): boolean => now_ms - last_ms < live_ms;
  for (const one of contacts) {
    if (!isLive(one)) continue;
    if (one.isShared(now_ms)) shared.add(one.sysid);
    for (const other of contacts) {
      if (other === one) break;
      if (other.sysid === one.sysid && isLive(other) && areDifferent(one, other, vehicleOf))
        shared.add(one.sysid);
    }
  }
  return shared;
}

function areDifferent(
  one: Contact,
  other: Contact,
  vehicleOf: (contact: Contact) => Vehicle | undefined,
): boolean {
  if (one.compid !== other.compid || !overlap(one, other)) return false;
  const [vehicle, other_vehicle] = [vehicleOf(one), vehicleOf(other)];
  if (vehicle === undefined || other_vehicle === undefined) return false;
  // Over a satellite a vehicle reports neither.
  if (one.isHighLatency || other.isHighLatency) return vehicle !== other_vehicle;
  if (one.uid !== undefined && other.uid !== undefined) return one.uid !== other.uid;
  // Without a hardware id, a vehicle is recognised by its boot time.
  if (one.booted_at_ms === undefined || other.booted_at_ms === undefined) return true;
  const apart_ms = Math.abs(one.booted_at_ms - other.booted_at_ms);
  // While the 32 bits of the clock start again, one link may still report the earlier count.
  return Math.min(apart_ms, Math.abs(apart_ms - clock_range_ms)) > same_boot_ms;
}

/** Whether each was received after the first frame of the other: not one vehicle that changed its address. */
function overlap(one: Contact, other: Contact): boolean {
  return one.last_ms > other.first_ms && other.last_ms > one.first_ms;
}

/** A station is present for this long after its last frame. */
const rival_ms = 30_000;

/** Other stations that use our system and component id, by link: two kits on one radio net. */
export class Rivals {
  readonly #seen_ms = new Map<Link, number>();

  readonly #log: Pick<DriverLog, 'error'>;
  readonly #own: { readonly sysid: number; readonly compid: number };

  constructor(log: Pick<DriverLog, 'error'>, own: { readonly sysid: number; readonly compid: number }) {
    this.#log = log;
    this.#own = own;
  }

  /** Notes a frame of one; logs it when it was not present before. */
  seen(link: Link, now_ms: number): void {
    const { sysid, compid } = this.#own;
    if (!this.has(link, now_ms))
      this.#log.error({ link: link.name, system_id: sysid, component_id: compid }, texts.rival);
    this.#seen_ms.set(link, now_ms);
  }

  has(link: Link, now_ms: number): boolean {
    const seen_ms = this.#seen_ms.get(link);
    return seen_ms !== undefined && now_ms - seen_ms < rival_ms;
  }
}
