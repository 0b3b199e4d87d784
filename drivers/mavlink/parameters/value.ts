/** The value of a parameter, which autopilots store in a float in two ways. Pure. */
import type { Autopilot } from '../vehicles/kind.ts';
import type { Messages } from '../wire/messages.ts';

const view = new DataView(new ArrayBuffer(4));
const float_digits = 7;

/** MAV_PARAM_TYPE of integers, as they stand in the bits of the field. */
const readers: ReadonlyMap<number, () => number> = new Map([
  [1, () => view.getUint8(0)],
  [2, () => view.getInt8(0)],
  [3, () => view.getUint16(0, true)],
  [4, () => view.getInt16(0, true)],
  [5, () => view.getUint32(0, true)],
  [6, () => view.getInt32(0, true)],
]);

/** Returns null for a value that is no number. ArduPilot converts integers to floats, PX4 stores their bits. */
export function valueOf(
  { param_value, param_type }: Pick<Messages['PARAM_VALUE'], 'param_type' | 'param_value'>,
  autopilot: Autopilot,
): number | null {
  view.setUint32(0, param_value, true);
  const integer = readers.get(param_type);
  if (integer && autopilot === 'px4') return integer();
  const value = view.getFloat32(0, true);
  if (!Number.isFinite(value)) return null;
  return integer ? value : Number(value.toPrecision(float_digits));
}

/** Returns the field for a value: the opposite, for the simulated vehicle. */
export function bitsOf(value: number, isIntegerInBits: boolean): number {
  if (isIntegerInBits) view.setInt32(0, value, true);
  else view.setFloat32(0, value, true);
  return view.getUint32(0, true);
}
