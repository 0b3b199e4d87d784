/** Which interfaces PPP over Ethernet runs on. */
import { join } from 'node:path';
import { readTextSync } from '../../../src/device/system-files.ts';

/** From the sessions in /proc/net/pppoe: `Id Address Device`, a line each. Without the kernel module there are none. */
export function pppoeDevices(proc: string): readonly string[] {
  const lines = (readTextSync(join(proc, 'net/pppoe')) ?? '').split('\n').slice(1);
  const devices = lines.flatMap((line) => line.trim().split(/\s+/u)[2] ?? []);
  return [...new Set(devices)];
}
