/**
 * What needs a machine of its own: a radio that is plugged in, memory limits, clocks that jump, links that are bad, disks
 * that fail. One machine lives through all of it, so each test begins where the one before it ended.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { StatusReport } from '../../src/kit/local/api.ts';
import { buildGateway } from '../support/systemd/packages.ts';
import { targetNamed } from '../../systemd/package/target.ts';
import { eventually } from '../support/eventually.ts';
import { type Machine, startMachine } from '../support/systemd/machine.ts';
import { amd64, machineMissing } from '../support/systemd/machine-kind.ts';
import {
  type MachineDaemon,
  daemonOn,
  isDrone,
  patience_ms,
  unit,
} from '../support/systemd/machine-daemon.ts';
import {
  plugInVehicle,
  silenceVehicle,
  unplugVehicle,
  wakeVehicle,
  whileDeaf,
} from '../support/systemd/machine-vehicle.ts';
import { peerMissing } from '../support/peers.ts';

const out = join(import.meta.dirname, '../../dist/test');
const config = '/etc/kit-connector/config.yaml';
const state_dir = '/var/lib/kit-connector';

const isMissing = machineMissing(amd64) || peerMissing('x86_64-linux-gnu-strip');

describe.skipIf(isMissing)('the package on a machine', () => {
  let machine: Machine;
  let daemon: MachineDaemon;

  beforeAll(async () => {
    const target = targetNamed('amd64');
    machine = await startMachine(await buildGateway({ target, out, compression: 'none' }));
    daemon = daemonOn(machine);
    await machine.sh(`cat >${config} <<'END'
kit_id: 3f0c1f6e-52a4-4c0e-9d6b-1f2a7c9e4b10
broker: { url: none }
drivers:
  - { driver: gateway, options: { interval_s: 1 } }
  - driver: mavlink
    options: { links: [{ kind: serial, path: /dev/ttyACM0, baud: [57600] }] }
  - driver: links
    options:
      wan: { wan0: { type: satellite } }
      probe: { targets: [198.18.0.1, 198.18.0.2], interval_s: 0.5 }
END
systemctl restart ${unit}`);
  });
  afterAll(async () => machine?.stop());
  beforeEach(({ onTestFailed }) => {
    onTestFailed(async () => {
      const { output } = await machine.attempt(`journalctl --unit=${unit} --unit=vehicle --lines=60`);
      console.error(output);
    });
  });

  test('a radio that is plugged in after the start is opened, lost with its cable and found again, by the same process', async () => {
    const pid = await daemon.mainPid();
    expect(Number(pid)).toBeGreaterThan(1);
    expect((await machine.attempt('test -e /dev/ttyACM0')).code).toBe(1);
    await plugInVehicle(machine);
    await daemon.hearsDrone();
    await unplugVehicle(machine);
    await daemon.reports('the drone is offline', isDrone('offline'));
    expect((await machine.attempt('test -e /dev/ttyACM0')).code).toBe(1);
    await plugInVehicle(machine);
    await daemon.hearsDrone();
    expect(await daemon.mainPid()).toBe(pid);
  });

  test('a vehicle that takes nothing is received all the same, and a stop does not wait for it', async () => {
    await whileDeaf(machine, async () => {
      await daemon.hearsDrone();
      await machine.sh(`systemctl stop ${unit}`);
      expect(await daemon.property('Result')).toBe('success');
      await machine.sh(`systemctl start ${unit}`);
      await daemon.hearsDrone();
    });
    await daemon.hearsDrone();
  });

  test('messages go on through jumps of the clock, and the watchdog has no cause to act', async () => {
    const [pid, restarts] = [await daemon.mainPid(), await daemon.property('NRestarts')];
    const now_s = await machine.sh('date +%s');
    for (const jump of ['2036-01-01', '2001-01-01', `@${now_s}`]) {
      await machine.sh(`date --set='${jump}'`);
      await daemon.hearsDrone();
      expect((await daemon.report()).uptime_s).toBeLessThan(3_600);
    }
    expect([await daemon.mainPid(), await daemon.property('NRestarts')]).toEqual([pid, restarts]);
  });

  test('a daemon that the kernel ends for its memory is started again with its buffer whole', async () => {
    const restarts = await daemon.property('NRestarts');
    await silenceVehicle(machine);
    await daemon.reports('the drone is offline', isDrone('offline'));
    const { rows, oldest } = await daemon.feedsOnDisk();
    expect(rows).toBeGreaterThan(0);
    await machine.sh(`systemctl set-property --runtime ${unit} MemoryMax=40M`);
    await eventually(
      'it was ended for its memory',
      async () =>
        (await machine.attempt(`journalctl --unit=${unit} --output=cat | grep -q "result 'oom-kill'"`))
          .code === 0,
      patience_ms,
    );
    await machine.sh(`systemctl set-property --runtime ${unit} MemoryMax=400M`);
    await daemon.reports('it serves again', () => true);
    expect(await daemon.feedsOnDisk()).toMatchObject({ rows, oldest });
    expect(Number(await daemon.property('NRestarts'))).toBeGreaterThan(Number(restarts));
    await wakeVehicle(machine);
    await daemon.hearsDrone();
  });

  test('a link reports the delay and the loss that the kernel puts on it, and is offline when nothing passes', async () => {
    const link =
      (fits: (link: NonNullable<StatusReport['links']>[number]) => boolean) => (report: StatusReport) =>
        report.links?.some((each) => each.name === 'wan0' && fits(each)) === true;
    const pid = await daemon.mainPid();
    const wire = 'ip netns exec internet tc qdisc replace dev far root netem';
    await machine.sh(`ip netns add internet && ip -n internet link set lo up
for target in 198.18.0.1 198.18.0.2; do ip -n internet addr add $target/32 dev lo; done
ip link add wan0 type veth peer far netns internet
ip -n internet addr add 100.64.0.1/24 dev far && ip -n internet link set far up
ip addr add 100.64.0.2/24 dev wan0 && ip link set wan0 up && ip route add default via 100.64.0.1
modprobe sch_netem && ${wire} delay 300ms`);
    await daemon.reports(
      'the delay is seen',
      link(({ status, latency_ms }) => status === 'online' && (latency_ms ?? 0) >= 300),
    );
    await machine.sh(`${wire} delay 300ms loss 40%`);
    await daemon.reports(
      'the loss is seen',
      link(({ packet_loss_pct }) => (packet_loss_pct ?? 0) > 5),
    );
    await machine.sh(`${wire} loss 100%`);
    await daemon.reports(
      'the link is offline',
      link(({ status }) => status === 'offline'),
    );
    await machine.sh(`${wire} delay 10ms`);
    await daemon.reports(
      'the link is back',
      link(({ status, latency_ms }) => status === 'online' && (latency_ms ?? 300) < 300),
    );
    expect(await daemon.mainPid()).toBe(pid);
  });

  test('a disk whose writes fail is named and costs no message, and what was on it is whole on the next disk that works', async () => {
    const table = (how: string): string => `dmsetup suspend --noflush flaky
echo "0 1048576 ${how}" | dmsetup load flaky && dmsetup resume flaky`;
    const isNamed = ({ degraded }: StatusReport): boolean =>
      degraded.some((reason) => reason.startsWith('disk write failed'));
    await machine.sh(`modprobe loop && modprobe dm-flakey
truncate --size=512M /var/flaky.img && losetup /dev/loop7 /var/flaky.img
echo '0 1048576 linear /dev/loop7 0' | dmsetup create flaky && mke2fs -q -t ext4 /dev/mapper/flaky
systemctl stop ${unit} && mount /dev/mapper/flaky ${state_dir}
chown kit-connector:kit-connector ${state_dir} && systemctl start ${unit}`);
    await daemon.hearsDrone();
    expect(isNamed(await daemon.report())).toBe(false);
    await silenceVehicle(machine);
    const { rows, oldest } = await daemon.feedsOnDisk();
    expect(rows).toBeGreaterThan(0);
    const pid = await daemon.mainPid();
    await machine.sh(table('flakey /dev/loop7 0 0 3600 1 error_writes'));
    await wakeVehicle(machine);
    await daemon.reports('the disk is named', isNamed);
    await daemon.hearsDrone();
    const { dropped, by_lane } = (await daemon.report()).outbox;
    // Of what has only a newest value, such as telemetry of the kit, that one is kept.
    expect(Object.keys(dropped).filter((reason) => reason !== 'superseded')).toEqual([]);
    expect(by_lane['feed']?.rows).toBe(rows);
    expect(by_lane['feed']?.memory_rows).toBeGreaterThan(0);
    expect(await daemon.mainPid()).toBe(pid);
    await silenceVehicle(machine);
    await machine.sh(`systemctl stop ${unit}; umount ${state_dir}; ${table('linear /dev/loop7 0')}
e2fsck -fy /dev/mapper/flaky; mount /dev/mapper/flaky ${state_dir} && systemctl start ${unit}`);
    expect(await daemon.feedsOnDisk()).toMatchObject({ rows, oldest });
    await wakeVehicle(machine);
    await daemon.hearsDrone();
    expect(isNamed(await daemon.report())).toBe(false);
  });
});
