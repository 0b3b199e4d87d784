/** The gateway itself: load, memory and uptime, read from /proc. */
import { createHmac } from 'node:crypto';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { gatewayFeeds } from '../../src/contract/feeds.ts';
import type { Gateway } from '../../src/contract/kit.ts';
import { type Command, defineCommand, noInput } from '../../src/toolkit/driver/command.ts';
import { defineDriver, type DriverHost } from '../../src/toolkit/driver/driver.ts';
import { CommandRefused, DeviceUnreachable, notSent } from '../../src/platform/errors.ts';
import { sleep, within } from '../../src/platform/time.ts';
import { StateFile } from '../../src/toolkit/device/state-file.ts';
import { readTextSync, readNamesSync, readNumberSync } from '../../src/toolkit/device/system-files.ts';
import { type GatewayOptions, gatewayOptions } from './options.ts';
import { cpuPct, type CpuTimes, groupMemPct, memPct, parseCpu, uptime_s } from './proc.ts';
import { rebootOrder } from './reboot-order.ts';
import { texts } from './texts.ts';

/** Stop, firmware, start, and a clock that is set again. */
const reboot_timeout_ms = 600_000;
/** The doctor asks everything that the kit needs, also what does not answer. */
const bundle_timeout_ms = 180_000;

export const gateway = defineDriver({
  name: 'gateway',
  feeds: gatewayFeeds,
  options: gatewayOptions,
  run: runGateway,
});

async function runGateway(options: GatewayOptions, host: DriverHost<typeof gatewayFeeds>): Promise<void> {
  const { roots, interval_s } = options;
  const name = options.name ?? hostname();
  readCpu(options);
  const facts = kernelFacts(roots) ?? (await machineFacts(host.signal));
  if (host.signal.aborted) return;
  const model = options.model ?? facts.model;
  const asset_key = gatewayKey(roots);
  const about = { asset_key, name, vendor: facts.vendor, model, configured: true } as const;
  host.announce({ ...about, type: 'gateway', protocol: 'gateway' }, commandsOf(options, host));
  // Not the reading from before: what reading the facts has cost is no load of the kit.
  let cpu: CpuTimes | undefined;
  while (!host.signal.aborted) {
    const now = readCpu(options);
    host.reportKit({ gateway: gatewayOf({ name, model, before: cpu, now }, options) });
    cpu = now;
    await sleep(interval_s * 1_000, host.signal);
  }
}

function commandsOf(options: GatewayOptions, host: DriverHost<typeof gatewayFeeds>): readonly Command[] {
  const offered = { reboot: () => rebootCommand(options, host), support_bundle: () => bundleCommand(host) };
  return [...new Set(options.commands)].map((name) => offered[name]());
}

function bundleCommand({ files }: DriverHost<typeof gatewayFeeds>): Command {
  return defineCommand({
    name: 'support_bundle',
    description: texts.support_bundle,
    risk_level: 'low',
    timeout_ms: bundle_timeout_ms,
    input: noInput,
    handle: async (_input, { signal }) => {
      if (!files.addBundle) throw new CommandRefused(notSent(texts.no_bundles));
      return { file_id: await files.addBundle(signal) };
    },
  });
}

/** The code of the bus is loaded by the first command that needs it. */
function rebootCommand(options: GatewayOptions, host: DriverHost<typeof gatewayFeeds>): Command {
  const order = new StateFile(host.stateFile('reboot.json'), rebootOrder);
  return defineCommand({
    name: 'reboot',
    description: texts.reboot,
    risk_level: 'high',
    timeout_ms: reboot_timeout_ms,
    // Run again after the restart, it concludes what the first run ordered.
    repeatable: true,
    input: noInput,
    handle: async (_input, context) => {
      const { rebootGateway } = await import('./reboot.ts');
      return rebootGateway({ options, order }, context);
    },
  });
}

interface Reading {
  readonly name: string;
  readonly model: string | null;
  readonly before: CpuTimes | undefined;
  readonly now: CpuTimes;
}

function gatewayOf({ name, model, before, now }: Reading, { roots }: GatewayOptions): Gateway {
  return {
    name,
    model,
    cpu_pct: cpuPct(before, now),
    mem_pct: groupMemory(roots) ?? memPct(readTextSync(join(roots.proc, 'meminfo')) ?? ''),
    uptime_s: uptime_s(readTextSync(join(roots.proc, 'uptime')) ?? ''),
  };
}

/** Of a container with its own limit, whose `/proc/meminfo` is the host's; undefined on a machine. */
function groupMemory({ sys }: GatewayOptions['roots']): number | undefined {
  const read = (file: string): string => readTextSync(join(sys, 'fs/cgroup', file)) ?? '';
  const limit = read('memory.max');
  return limit === '' ? undefined : groupMemPct(limit, read('memory.current'), read('memory.stat'));
}

/** Without it nothing about the machine can be known. */
function readCpu({ roots }: GatewayOptions): CpuTimes {
  const path = join(roots.proc, 'stat');
  const text = readTextSync(path);
  const cpu = text === undefined ? undefined : parseCpu(text);
  if (!cpu) throw new DeviceUnreachable(texts.proc_unreadable(path));
  return cpu;
}

// Identity of the gateway: a key that survives changes of address and name, and its vendor and model.

interface MachineFacts {
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
