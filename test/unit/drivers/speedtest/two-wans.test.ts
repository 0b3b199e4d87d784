/** The speedtest driver on a gateway with two WANs of different rates: every figure is that of the link that was asked for. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { speedtest } from '../../../../drivers/speedtest/speedtest.ts';
import { driverLab } from '../../../support/drivers/driver-lab.ts';
import { peerMissing, rootMissing } from '../../../support/peers.ts';
import { makeDirectory } from '../../../support/temporary.ts';
import {
  lab_ports,
  lab_targets,
  type LabWan,
  startWanLab,
  type WanLab,
} from '../../../support/gateway/wan-lab.ts';

/** The satellite link is the default route, and the slower one. */
const wires = { sat0: { rate_kbit: 2_000, rtt_ms: 100 }, wwan0: { rate_kbit: 8_000, rtt_ms: 10 } } as const;
const kbit_per_mbit = 1_000;

describe.skipIf(rootMissing() || peerMissing('ip', 'nft', 'sysctl'))('a speed test between two WANs', () => {
  let lab: WanLab;
  let leave: () => void = () => undefined;
  let driver: ReturnType<typeof driverLab>;

  beforeAll(async () => {
    lab = await startWanLab();
    for (const wan of ['sat0', 'wwan0'] as const) await lab.set(wan, wires[wan]);
    // Entering the namespace moves the sockets of this thread, not its /sys.
    const sys = await makeDirectory();
    for (const wan of ['sat0', 'wwan0']) {
      await mkdir(join(sys, 'class/net', wan), { recursive: true });
      await writeFile(join(sys, 'class/net', wan, 'uevent'), `INTERFACE=${wan}\n`);
    }
    leave = lab.enter();
    const origin = `http://${lab_targets[0]}:${lab_ports.what_is_my_ip}`;
    const server = { name: 'lab', download_url: `${origin}/down?bytes={bytes}`, upload_url: `${origin}/up` };
    driver = driverLab(speedtest, {
      servers: [server],
      bytes_max: 600_000,
      seconds_max: 20,
      connections: 2,
      roots: { sys },
    });
    await driver.until('the command', () => driver.shown.commands.length === 1);
  });
  afterAll(async () => {
    await driver.stop();
    leave();
    await lab.stop();
  });

  const measured = async (link: LabWan) => {
    const [command] = driver.shown.commands;
    const signal = new AbortController().signal;
    const context = { signal, progress: () => undefined, remaining_ms: () => 60_000 };
    return command?.read({ link, allow_metered: true }).run(context);
  };

  it.each(['wwan0', 'sat0'] as const)('measures %s at its own rate and delay', async (link) => {
    const { rate_kbit, rtt_ms } = wires[link];
    const mbps = rate_kbit / kbit_per_mbit;
    const result = await measured(link);
    expect(result).toMatchObject({ link });
    // Headers take a few percent; a busy machine makes a link slower, and nothing makes it faster.
    for (const name of ['download_mbps', 'upload_mbps']) {
      expect(result?.[name]).toBeGreaterThan(mbps * 0.4);
      expect(result?.[name]).toBeLessThan(mbps * 1.3);
    }
    expect(result?.['latency_ms']).toBeGreaterThanOrEqual(rtt_ms * 0.9);
  });

  it('uses the requested link, also when the default route changes to the other', async () => {
    await lab.ip('route', 'add', 'default', 'via', '10.64.0.1', 'dev', 'wwan0', 'metric', '50');
    const result = await measured('sat0');
    expect(result?.['download_mbps']).toBeLessThan((wires.sat0.rate_kbit / kbit_per_mbit) * 1.3);
    await lab.ip('route', 'del', 'default', 'dev', 'wwan0', 'metric', '50');
  });
});
