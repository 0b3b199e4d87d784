/** Asset keys and descriptions of vehicles, from the identification messages of the autopilot. */
import type { AssetDescription } from '../../../src/toolkit/driver/driver.ts';
import type { Contact } from './contact.ts';
import { assetTypeOf, kindOf, modelOf } from '../reports/kind.ts';
import type { MavlinkOptions } from '../options.ts';
import { type HardwareId, isSameHardware } from '../reports/hardware.ts';
import type { Messages } from '../wire/messages.ts';
import { notOffered } from '../../../src/toolkit/driver/health.ts';
import { texts } from './texts.ts';

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

interface Known {
  readonly hardware_id: HardwareId | undefined;
  readonly hardware_key: string;
  readonly isConfigured: boolean;
}

/** Returns the key of the vehicle that has this hardware, whichever of its numbers the key is made of. */
export function hardwareKeyOf(
  { hardware, asset_key }: Contact,
  vehicles: readonly Known[],
  configured: MavlinkOptions['vehicles'],
): string {
  const known = vehicles.find(({ hardware_id }) => isSameHardware(hardware_id, hardware.id) === true);
  const keys = hardware.names.map((name) => `mavlink:${name}`);
  const own = keys.find((key) => Object.hasOwn(configured, key));
  if (own !== undefined && known?.isConfigured !== true) return own;
  return known?.hardware_key ?? keys[0] ?? asset_key;
}

/** Whether the key is not derived from the hardware. */
export function isProvisional(asset_key: string): boolean {
  return asset_key.startsWith(provisional_prefix);
}

/** Whether the key belongs to the contact, with or without the system id that distinguishes clones. */
export function isKeyOf(asset_key: string, contact: Contact): boolean {
  const key = contact.asset_key;
  return asset_key === key || asset_key === cloneKeyOf(contact);
}

export function cloneKeyOf({ asset_key, sysid }: Pick<Contact, 'asset_key' | 'sysid'>): string {
  return `${asset_key}:system-${sysid}`;
}

/** Two vehicles with one hardware id do not have one name. */
export function nameOfClone(name: string | undefined, { sysid }: Pick<Contact, 'sysid'>): string | undefined {
  return name === undefined ? undefined : `${name} (system ${sysid})`;
}

/** `sysid`: the one that it had first, since its name stays when its system id is changed. */
export function vehicleAsset(
  { latest, autopilot, mav_type: type, isTelemetryOnly }: Contact,
  asset_key: string,
  { name, sysid }: { readonly name: string | undefined; readonly sysid: number },
): AssetDescription {
  const version = latest.last('AUTOPILOT_VERSION');
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
    ...(isTelemetryOnly ? { health: { commands: notOffered(texts.telemetry_only) } } : {}),
  };
}

/** Formats the version: the highest byte is the major version, the lowest the release type. */
function firmware({ flight_sw_version }: Messages['AUTOPILOT_VERSION']): string {
  const [major, minor, patch] = [24, 16, 8].map((bits) => (flight_sw_version >>> bits) & 0xff);
  return `${major}.${minor}.${patch}${release_names.get(flight_sw_version & 0xff) ?? ''}`;
}
