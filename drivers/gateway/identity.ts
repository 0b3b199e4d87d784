/** Identity of the gateway: a key that survives changes of address and name, and its vendor and model. */
import { createHmac } from 'node:crypto';
import { join } from 'node:path';
import { within } from '../../src/platform/time.ts';
import { readNamesSync, readNumberSync, readTextSync } from '../../src/toolkit/device/system-files.ts';
import type { GatewayOptions } from './options.ts';

export interface MachineFacts {
  readonly vendor: string | null;
  readonly model: string | null;
}

/** Reading the model runs programs and opens contended files, which may be slow on a loaded machine. */
export const machine_facts_timeout_ms = 5_000;

/** Placeholders that vendors leave in DMI fields, and that systemd writes before the first boot. */
const placeholder =
  /^(?:|0+|-|none|unknown|uninitialized|default string|not (?:specified|applicable)|system (?:product name|manufacturer|serial number|version)|to be filled.*|o\.?e\.?m\.?)$/iu;

/**
 * A key from the machine id, else the serial number of the product, else the first MAC address that is burnt in. Each is
 * hashed for this one use: the machine id must not be published (machine-id(5)), and the other two need not be.
 */
export function gatewayKey({ etc, sys }: GatewayOptions['roots']): string {
  const secret =
    genuine(readTextSync(join(etc, 'machine-id'))) ??
    genuine(readTextSync(join(sys, 'class/dmi/id/product_serial'))) ??
    firstPermanentMac(sys);
  if (secret === undefined) return 'gateway';
  return `gateway:${createHmac('sha256', secret).update('kit-connector gateway').digest('hex').slice(0, 32)}`;
}

/** Vendor and model as the kernel publishes them (DMI, device tree); undefined where it knows no model. */
export function kernelFacts({ proc, sys }: GatewayOptions['roots']): MachineFacts | undefined {
  const dmi = (file: string): string | undefined => genuine(readTextSync(join(sys, 'class/dmi/id', file)));
  const board = deviceTreeModel({ proc });
  const model = board ?? dmi('product_name');
  if (model === undefined) return undefined;
  // `raspberrypi,4-model-b` NUL `brcm,bcm2711`: the maker stands before the first comma.
  const [maker = ''] = (readTextSync(join(proc, 'device-tree/compatible')) ?? '').split(',');
  return { vendor: dmi('sys_vendor') ?? genuine(board === undefined ? undefined : maker) ?? null, model };
}

/** Reads vendor and model; null where unknown or not read in time. `read` queries the machine. */
export async function machineFacts(
  signal: AbortSignal,
  read: () => Promise<{ readonly manufacturer: string; readonly model: string }> = readSystem,
): Promise<MachineFacts> {
  // When the library throws, the names stay unknown and the measurements go out without them.
  const system = await within(
    machine_facts_timeout_ms,
    read().catch(() => undefined),
    signal,
  );
  return { vendor: genuine(system?.manufacturer) ?? null, model: genuine(system?.model) ?? null };
}

/** Model of a board without DMI, as its device tree names it; undefined where there is none. */
export function deviceTreeModel({ proc }: Pick<GatewayOptions['roots'], 'proc'>): string | undefined {
  return genuine(readTextSync(join(proc, 'device-tree/model'))?.replaceAll('\0', ''));
}

/**
 * Loads the library on demand: it is large, and runs programs, which no other part of this driver does. It waits for some of
 * them without giving up the event loop, hence it is asked only where the kernel knows no model.
 */
async function readSystem(): Promise<{ readonly manufacturer: string; readonly model: string }> {
  const { system } = await import('systeminformation');
  return system();
}

function genuine(text: string | undefined): string | undefined {
  const trimmed = text?.trim();
  return trimmed === undefined || placeholder.test(trimmed) ? undefined : trimmed;
}

/** `addr_assign_type` 0: the address is the hardware's own, not random, inherited or configured. */
function firstPermanentMac(sys: string): string | undefined {
  const net = join(sys, 'class/net');
  const isPermanent = (name: string): boolean => readNumberSync(join(net, name, 'addr_assign_type')) === 0;
  const macs = (readNamesSync(net) ?? [])
    .filter(isPermanent)
    .sort()
    .map((name) => readTextSync(join(net, name, 'address')));
  return macs.find((mac) => mac !== undefined && /[1-9a-f]/iu.test(mac));
}
