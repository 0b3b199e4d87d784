/** Who this gateway is: a key that outlives addresses and names, and what its maker calls it. */
import { createHmac } from 'node:crypto';
import { join } from 'node:path';
import { within } from '../../src/platform/time.ts';
import { readNames, readNumber, readText } from './files.ts';
import type { GatewayOptions } from './options.ts';

export interface MachineFacts {
  readonly vendor: string | null;
  readonly model: string | null;
}

/** Programs are run and files with many readers are opened for it, which may take its time on a bad day. */
export const machine_facts_timeout_ms = 5_000;

/** What makers write where they were asked for a name, and systemd before the first boot. */
const placeholder =
  /^(?:|0+|-|none|unknown|uninitialized|default string|not (?:specified|applicable)|system (?:product name|manufacturer|serial number|version)|to be filled.*|o\.?e\.?m\.?)$/iu;

/**
 * A key from the machine id, else the serial number of the product, else the first MAC address that is burnt in. Each is
 * hashed for this one use: the machine id must not be shown to others (machine-id(5)), and nobody needs the other two.
 */
export function gatewayKey({ etc, sys }: GatewayOptions['roots']): string {
  const secret =
    genuine(readText(join(etc, 'machine-id'))) ??
    genuine(readText(join(sys, 'class/dmi/id/product_serial'))) ??
    firstPermanentMac(sys);
  if (secret === undefined) return 'gateway';
  return `gateway:${createHmac('sha256', secret).update('kit-connector gateway').digest('hex').slice(0, 32)}`;
}

/** Vendor and model as the machine tells them; null where it does not, or not in time. `read` asks the machine. */
export async function machineFacts(
  signal: AbortSignal,
  read: () => Promise<{ readonly manufacturer: string; readonly model: string }> = readSystem,
): Promise<MachineFacts> {
  // A library that throws leaves the names unknown; that is no reason to be without the figures.
  const system = await within(
    machine_facts_timeout_ms,
    read().catch(() => undefined),
    signal,
  );
  return { vendor: genuine(system?.manufacturer) ?? null, model: genuine(system?.model) ?? null };
}

/** Loaded only here, and only the part that is asked: it is large, and it runs programs, which nothing else here does. */
async function readSystem(): Promise<{ readonly manufacturer: string; readonly model: string }> {
  const { system } = await import('systeminformation/lib/system.js');
  return system();
}

function genuine(text: string | undefined): string | undefined {
  const trimmed = text?.trim();
  return trimmed === undefined || placeholder.test(trimmed) ? undefined : trimmed;
}

/** `addr_assign_type` 0: the address is the hardware's own, not random, stolen or set. */
function firstPermanentMac(sys: string): string | undefined {
  const net = join(sys, 'class/net');
  const isPermanent = (name: string): boolean => readNumber(join(net, name, 'addr_assign_type')) === 0;
  const macs = readNames(net)
    .filter(isPermanent)
    .sort()
    .map((name) => readText(join(net, name, 'address')));
  return macs.find((mac) => mac !== undefined && /[1-9a-f]/iu.test(mac));
}
