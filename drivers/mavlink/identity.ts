/** What a vehicle and its parts are called, and the keys of their assets, from what the autopilot says of itself. */
import type { AssetDescription } from '../../src/driver/driver.ts';
import type { Contact } from './contact.ts';
import { assetTypeOf, kindOf, modelOf } from './kind.ts';
import type { Messages } from './messages.ts';

const usual_component = 1;
/** MAV_TYPE of an autopilot that has not said what it flies. */
const type_unknown = 0;
const autopilot_names = { ardupilot: 'ArduPilot', px4: 'PX4', other: 'MAVLink' } as const;
/** USB vendor ids of boards. */
const board_vendors: ReadonlyMap<number, string> = new Map([
  [0x26ac, '3D Robotics'],
  [0x2dae, 'CubePilot'],
  [0x3162, 'Holybro'],
  [0x1fc9, 'NXP'],
  [0x3185, 'ARK Electronics'],
  [0x2fe3, 'mRo'],
]);
const release_names: ReadonlyMap<number, string> = new Map([
  [0, '-dev'],
  [64, '-alpha'],
  [128, '-beta'],
  [192, '-rc'],
  [255, ''],
]);

const provisional_prefix = 'mavlink:system-';

/** From the hardware; from the ids that are set in the autopilot where it has no identity of its own. */
export function assetKeyOf({ uid, sysid, compid }: Pick<Contact, 'uid' | 'sysid' | 'compid'>): string {
  if (uid !== undefined) return `mavlink:${uid}`;
  return compid === usual_component
    ? `mavlink:system-${sysid}`
    : `mavlink:system-${sysid}-component-${compid}`;
}

/** Whether the key says nothing of the hardware. */
export function isProvisional(asset_key: string): boolean {
  return asset_key.startsWith(provisional_prefix);
}

export function vehicleAsset(
  contact: Contact,
  asset_key: string,
  name: string | undefined,
): AssetDescription {
  const { heard, autopilot, sysid } = contact;
  const version = heard.last('AUTOPILOT_VERSION');
  const type = heard.last('HEARTBEAT')?.type ?? type_unknown;
  const model = modelOf(type);
  const software = autopilot_names[autopilot];
  return {
    asset_key,
    name: name ?? `${model ?? 'Vehicle'} ${sysid}`,
    type: assetTypeOf(kindOf(type)),
    protocol: 'mavlink',
    vendor: board_vendors.get(version?.vendor_id ?? 0) ?? software,
    model,
    firmware: version && version.flight_sw_version !== 0 ? `${software} ${firmware(version)}` : null,
  };
}

/** The highest byte is the major version, the lowest the kind of release. */
function firmware({ flight_sw_version }: Messages['AUTOPILOT_VERSION']): string {
  const [major, minor, patch] = [24, 16, 8].map((bits) => (flight_sw_version >>> bits) & 0xff);
  return `${major}.${minor}.${patch}${release_names.get(flight_sw_version & 0xff) ?? ''}`;
}
