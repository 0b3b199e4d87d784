/** Recognises vehicles that are received over a satellite. */
import { silenceSince } from '../../../src/platform/stalls.ts';
import type { MavlinkOptions } from '../options.ts';
import type { Decoded } from '../wire/messages.ts';
import type { Contact } from './contact.ts';
import { isProvisional } from './identity.ts';
import { senderOf } from './kind.ts';
import type { Vehicle } from './vehicle.ts';

/** Whether an autopilot reports itself, near or over a satellite. */
export function isOfAutopilot({ name, fields }: Decoded): boolean {
  return (name === 'HEARTBEAT' || name === 'HIGH_LATENCY2') && senderOf(fields).is === 'autopilot';
}

/** Over a satellite a vehicle reports no hardware id: the known vehicle with its system id is the same one. */
export function assumeIdentity(contact: Contact, vehicles: readonly Vehicle[]): void {
  const { isHighLatency, hardware, sysid, compid, asset_key } = contact;
  if (!isHighLatency || hardware.id !== undefined || !isProvisional(asset_key)) return;
  const same = vehicles.filter(
    ({ active, asset_key: key }) => !isProvisional(key) && active.sysid === sysid && active.compid === compid,
  );
  if (same.length === 1 && same[0]) contact.assume(same[0].asset_key);
}

/** Whether it could have been received and was not for so long that its vehicle is offline. */
export function isSilent(contact: Contact, now_ms: number, options: MavlinkOptions): boolean {
  return silenceSince(contact.last_ms, now_ms) >= offlineAfter_ms(contact, options);
}

/** Returns the silence after which a vehicle is offline: over a satellite it reports every minute or so. */
export function offlineAfter_ms(
  { isHighLatency }: Contact,
  { offline_after_s, high_latency_offline_after_s }: MavlinkOptions,
): number {
  return 1_000 * (isHighLatency ? high_latency_offline_after_s : offline_after_s);
}
