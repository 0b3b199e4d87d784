/** The gateway driver as a whole, on a fake machine and on this one. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  gateway,
  deviceTreeModel,
  gatewayKey,
  kernelFacts,
  machineFacts,
  machine_facts_timeout_ms,
} from '../../../../drivers/gateway/gateway.ts';
import { kitTelemetry } from '../../../../src/contract/kit.ts';
import { channels } from '../../../../src/contract/topics.ts';
import { driverConformance } from '../../../support/drivers/driver-conformance.ts';
import { eventually } from '../../../support/eventually.ts';
import { fakeMachine, type FakeMachine } from '../../../support/gateway/fake-machine.ts';
import { hubLab } from '../../../support/kit/hub-lab.ts';
import { cpuPct, memPct, parseCpu, uptime_s } from '../../../../drivers/gateway/proc.ts';

let machine: FakeMachine;
beforeAll(async () => {
  machine = await fakeMachine();
});
afterAll(async () => machine.remove());

describe('the gateway driver', () => {
  driverConformance({
    driver: gateway,
    options: () => ({ interval_s: 1, name: 'gw-test', roots: machine.roots }),
    peer: {
      start: async () => machine.setPresent(true),
      lose: async () => machine.setPresent(false),
      restore: async () => machine.setPresent(true),
      stop: async () => machine.setPresent(true),
    },
    without: { commands: 'reboot is tested with systemd-logind' },
  });
});

it('reports load, memory and uptime, and announces itself under a hashed key', async () => {
  const lab = hubLab();
  void lab.run(gateway, 'drones', {
    options: { interval_s: 1, name: 'gw-7', model: 'Edge 4', roots: machine.roots },
  });
  const first = await lab.outbox.until((draft) => draft.channel === channels.telemetry);
  expect(kitTelemetry.parse(first.data)).toMatchObject({
    gateway: { name: 'gw-7', model: 'Edge 4', mem_pct: 60, uptime_s: 86_400 },
  });
  await machine.setCpu(1_250, 9_750);
  await lab.outbox.until((draft) => kitTelemetry.safeParse(draft.data).data?.gateway?.cpu_pct === 25);
  const asset_key = gatewayKey(machine.roots);
  expect(lab.hub.assets()).toMatchObject([{ key: asset_key, type: 'gateway', status: 'online' }]);
  expect(asset_key).toMatch(/^gateway:[0-9a-f]{32}$/u);
  expect(asset_key).not.toContain('0123456789abcdef');
  await lab.stop();
});

it('runs on this machine as it is', async () => {
  const lab = hubLab();
  void lab.run(gateway);
  const first = await lab.outbox.until((draft) => draft.channel === channels.telemetry);
  const { gateway: read } = kitTelemetry.parse(first.data);
  expect(read?.mem_pct).toBeGreaterThan(0);
  expect(read?.uptime_s).toBeGreaterThan(0);
  await lab.stop();
});

it('takes its key from the serial number or a burnt-in MAC when there is no machine id', async () => {
  const other = await fakeMachine();
  try {
    const by_id = gatewayKey(other.roots);
    await other.write('etc/machine-id', 'uninitialized\n');
    await other.write('sys/class/dmi/id/product_serial', 'To Be Filled By O.E.M.\n');
    expect(gatewayKey(other.roots)).toBe('gateway');
    await other.setInterface({ name: 'lo', mac: '00:00:00:00:00:00' });
    await other.setInterface({ name: 'eth0' });
    const by_mac = gatewayKey(other.roots);
    await other.write('sys/class/dmi/id/product_serial', 'SN-4711\n');
    const by_serial = gatewayKey(other.roots);
    expect(new Set([by_id, by_mac, by_serial, 'gateway']).size).toBe(4);
  } finally {
    await other.remove();
  }
});

it('takes the model of a board from its device tree', async () => {
  const other = await fakeMachine();
  try {
    expect(deviceTreeModel(other.roots)).toBeUndefined();
    for (const nothing of ['', '\0', ' \n\0', 'To be filled by O.E.M.\0']) {
      await other.write('proc/device-tree/model', nothing);
      expect(deviceTreeModel(other.roots)).toBeUndefined();
    }
    await other.write('proc/device-tree/model', 'Raspberry Pi 4 Model B Rev 1.4\0');
    expect(deviceTreeModel(other.roots)).toBe('Raspberry Pi 4 Model B Rev 1.4');
    const lab = hubLab({ configured: ['gateway'] });
    void lab.run(gateway, 'gateway', { options: { roots: other.roots, interval_s: 1 } });
    await eventually('a report', () => lab.hub.kit().gateway !== undefined);
    expect(lab.hub.kit().gateway?.model).toBe('Raspberry Pi 4 Model B Rev 1.4');
    await lab.stop();
    await other.write('proc/device-tree/compatible', 'raspberrypi,4-model-b\0brcm,bcm2711\0');
    expect(kernelFacts(other.roots)?.vendor).toBe('raspberrypi');
  } finally {
    await other.remove();
  }
});

it('takes vendor and model from DMI where the kernel publishes it', async () => {
  const other = await fakeMachine();
  try {
    expect(kernelFacts(other.roots)).toBeUndefined();
    await other.write('sys/class/dmi/id/sys_vendor', 'ACME\n');
    await other.write('sys/class/dmi/id/product_name', 'To Be Filled By O.E.M.\n');
    expect(kernelFacts(other.roots)).toBeUndefined();
    await other.write('sys/class/dmi/id/product_name', 'Edge 4\n');
    const lab = hubLab({ configured: ['gateway'] });
    void lab.run(gateway, 'gateway', { options: { roots: other.roots, interval_s: 1 } });
    const announced = await lab.outbox.until(({ channel }) => channel.startsWith('asset/'));
    expect(announced.data).toMatchObject({ vendor: 'ACME', model: 'Edge 4' });
    await lab.stop();
  } finally {
    await other.remove();
  }
});

it('reports the memory of a container with a limit as the share of that limit', async () => {
  const other = await fakeMachine();
  try {
    await other.write('sys/fs/cgroup/memory.max', '1000000\n');
    await other.write('sys/fs/cgroup/memory.current', '550000\n');
    await other.write('sys/fs/cgroup/memory.stat', 'anon 400000\ninactive_file 100000\n');
    const lab = hubLab({ configured: ['gateway'] });
    void lab.run(gateway, 'gateway', { options: { roots: other.roots, interval_s: 1 } });
    await eventually('a report', () => lab.hub.kit().gateway !== undefined);
    expect(lab.hub.kit().gateway?.mem_pct).toBe(45);
    await lab.stop();
  } finally {
    await other.remove();
  }
});

it('reports vendor and model as unknown when the machine reports none, nonsense, or is too slow', async () => {
  const { signal } = new AbortController();
  const none = { vendor: null, model: null };
  await expect(
    machineFacts(signal, async () => ({ manufacturer: 'ACME', model: 'Edge 4' })),
  ).resolves.toEqual({
    vendor: 'ACME',
    model: 'Edge 4',
  });
  const nonsense = { manufacturer: ' Default string ', model: 'To Be Filled By O.E.M.' };
  await expect(machineFacts(signal, async () => nonsense)).resolves.toEqual(none);
  await expect(machineFacts(signal, async () => Promise.reject(new Error('no dmi')))).resolves.toEqual(none);
  vi.useFakeTimers();
  const slow = machineFacts(signal, async () => new Promise<never>(() => undefined));
  await vi.advanceTimersByTimeAsync(machine_facts_timeout_ms);
  vi.useRealTimers();
  await expect(slow).resolves.toEqual(none);
});

it('counts idle and iowait as not busy, and guest time once', () => {
  const stat = 'cpu  100 10 50 800 40 5 5 0 60 0\ncpu0 1 1 1 1\n';
  expect(parseCpu(stat)).toEqual({ busy: 170, total: 1_010 });
});

it('reports no load from one reading, without time between, or after a reboot', () => {
  const reading = { busy: 100, total: 1_000 };
  expect(cpuPct(undefined, reading)).toBeUndefined();
  expect(cpuPct(reading, reading)).toBeUndefined();
  expect(cpuPct(reading, { busy: 1, total: 10 })).toBeUndefined();
});

it('computes the load between two readings with one decimal, within 0 and 100', () => {
  const before = { busy: 100, total: 1_000 };
  expect(cpuPct(before, { busy: 137, total: 1_300 })).toBe(12.3);
  expect(cpuPct(before, { busy: 90, total: 1_010 })).toBe(0);
  expect(cpuPct(before, { busy: 120, total: 1_010 })).toBe(100);
});

it('counts available memory as free', () => {
  const meminfo = 'MemTotal:        1000 kB\nMemFree:   1 kB\nMemAvailable:     250 kB\n';
  expect(memPct(meminfo)).toBe(75);
});

it('reports missing values as unknown', () => {
  expect(parseCpu('')).toBeUndefined();
  expect(parseCpu('cpu  a b c d\n')).toBeUndefined();
  expect(memPct('MemTotal: 1000 kB\n')).toBeUndefined();
  expect(memPct('MemTotal: 1000 kB\nMemAvailable: 2000 kB\n')).toBeUndefined();
  expect(uptime_s('')).toBeUndefined();
  expect(uptime_s('12.9 4.0\n')).toBe(12);
});
