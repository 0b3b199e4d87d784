/** Network devices as the kernel counts them. */
import { libc } from './libc.ts';

/** The kernel's index of the device with this name now, or null: a device that is plugged in again gets another one. */
export async function deviceIndex(device: string): Promise<number | null> {
  const index = (await libc()).if_nametoindex(device);
  return index === 0 ? null : index;
}
