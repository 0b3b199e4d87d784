/** Which run of the machine this is. */
import { readFileSync } from 'node:fs';
import type { Boot } from './api.ts';

/** From the kernel; two boots of a kernel without this identifier count as different. */
export function readBoot(proc = '/proc'): Boot {
  try {
    const id = readFileSync(`${proc}/sys/kernel/random/boot_id`, 'utf8').trim();
    const uptime_s = Number.parseFloat(readFileSync(`${proc}/uptime`, 'utf8'));
    return { id, offset_ms: uptime_s * 1_000 - performance.now() };
  } catch {
    return { id: `unknown-${process.pid}-${Date.now()}`, offset_ms: 0 };
  }
}
