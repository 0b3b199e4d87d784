/** Which run of the machine this is. */
import type { Boot } from './api.ts';
import { readTextUpToSync, small_bytes_max } from '../../../src/platform/bounded-file.ts';

/** From the kernel; two boots of a kernel without this identifier count as different. */
export function readBoot(proc = '/proc'): Boot {
  try {
    const id = readTextUpToSync(`${proc}/sys/kernel/random/boot_id`, small_bytes_max).trim();
    const uptime_s = Number.parseFloat(readTextUpToSync(`${proc}/uptime`, small_bytes_max));
    return { id, offset_ms: uptime_s * 1_000 - performance.now() };
  } catch {
    return { id: `unknown-${process.pid}-${Date.now()}`, offset_ms: 0 };
  }
}
