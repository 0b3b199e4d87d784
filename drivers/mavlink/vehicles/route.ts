/** Where an autopilot is received, for the forwarding of frames. */
import type { Link } from '../links/link.ts';
import type { Contact } from './contact.ts';
import type { Vehicle } from './vehicle.ts';

export interface Route {
  readonly sysid: number;
  readonly compid: number;
  readonly link: Link;
  readonly peer: string;
  /** Of its vehicle; undefined before it is identified. */
  readonly asset_key: string | undefined;
  /** Whether commands take this route: a vehicle may be received over several. */
  readonly is_active: boolean;
  /** Whether another vehicle elsewhere uses its system id, and the configuration does not name where this one is received. */
  readonly is_namesake: boolean;
}

export function routeOf(contact: Contact, vehicle: Vehicle | undefined): Route {
  const { sysid, compid, link, peer } = contact;
  const is_active = !vehicle || vehicle.active === contact;
  const is_namesake = vehicle?.namesake !== undefined && !vehicle.hasHosts && !contact.isNamed;
  return { sysid, compid, link, peer, asset_key: vehicle?.asset_key, is_active, is_namesake };
}
