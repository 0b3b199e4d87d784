/** The gateway itself: load, memory and uptime, read from /proc. */
import { hostname } from 'node:os';
import { join } from 'node:path';
import { gatewayFeeds } from '../../src/contract/feeds.ts';
import type { Gateway } from '../../src/contract/kit.ts';
import { type Command, defineCommand, noInput } from '../../src/toolkit/driver/command.ts';
import { defineDriver, type DriverHost } from '../../src/toolkit/driver/driver.ts';
import { DeviceUnreachable } from '../../src/platform/errors.ts';
import { sleep } from '../../src/platform/time.ts';
import { StateFile } from '../../src/toolkit/device/state-file.ts';
import { readTextSync } from '../../src/toolkit/device/system-files.ts';
import { gatewayKey, kernelFacts, machineFacts } from './identity.ts';
import { type GatewayOptions, gatewayOptions } from './options.ts';
import { cpuPct, type CpuTimes, groupMemPct, memPct, parseCpu, uptime_s } from './proc.ts';
import { rebootOrder } from './reboot-order.ts';
import { texts } from './texts.ts';

/** Stop, firmware, start, and a clock that is set again. */
const reboot_timeout_ms = 600_000;

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

/** The code of the bus is loaded by the first command that needs it. */
function commandsOf(options: GatewayOptions, host: DriverHost<typeof gatewayFeeds>): readonly Command[] {
  if (!options.commands.includes('reboot')) return [];
  const order = new StateFile(host.stateFile('reboot.json'), rebootOrder);
  const reboot = defineCommand({
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
  return [reboot];
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
