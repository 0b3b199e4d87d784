/** Network devices as the kernel counts them. */
import { libc } from './libc.ts';

/** `IFNAMSIZ`, with the zero at its end. */
const ifname_bytes = 16;

/** The name of the device with this index now, or null. */
export async function deviceName(ifindex: number): Promise<string | null> {
  const name = Buffer.alloc(ifname_bytes);
  if (!(await libc()).if_indextoname(ifindex, name)) return null;
  return name.toString('utf8', 0, name.indexOf(0));
}

/** The kernel's index of the device with this name now, or null: a device that is plugged in again gets another one. */
export async function deviceIndex(device: string): Promise<number | null> {
  const index = (await libc()).if_nametoindex(device);
  return index === 0 ? null : index;
}
