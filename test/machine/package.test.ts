/**
 * What needs a machine of its own: memory limits, a radio that is plugged in, clocks that jump, links that are bad, disks
 * that fail. One machine lives through all of it, so each test begins where the one before it ended.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { buildPackage } from '../../systemd/package/build.ts';
import { targetNamed } from '../../systemd/package/target.ts';
import { eventually } from '../support/eventually.ts';
import { type Machine, machineMissing, startMachine } from '../support/machine.ts';
import { plugInVehicle, unplugVehicle } from '../support/machine-vehicle.ts';
import { peerMissing } from '../support/peers.ts';

const out = join(import.meta.dirname, '../../dist/test');
const unit = 'kit-connector.service';
const config = '/etc/kit-connector/config.yaml';
const state_dir = '/var/lib/kit-connector';
/** Starting the daemon alone takes ten seconds on an emulated processor. */
const patience_ms = 240_000;

const status = z.looseObject({
  uptime_s: z.number(),
  degraded: z.array(z.string()),
  outbox: z.looseObject({ accepted: z.number(), buffered: z.number(), balanced: z.boolean() }),
  assets: z.array(z.looseObject({ type: z.string(), status: z.string() })),
  links: z.array(
    z.looseObject({
      name: z.string(),
      status: z.string().nullish(),
      latency_ms: z.number().nullish(),
      packet_loss_pct: z.number().nullish(),
    }),
  ),
});
type Status = z.output<typeof status>;

describe.skipIf(machineMissing() || peerMissing('x86_64-linux-gnu-strip'))('the package on a machine', () => {
  let machine: Machine;

  beforeAll(async () => {
    const target = targetNamed('amd64');
    machine = await startMachine(await buildPackage({ target, out, compression: 'none' }));
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

  const property = async (name: string): Promise<string> =>
    machine.sh(`systemctl show ${unit} --property=${name} --value`);
  const mainPid = async (): Promise<string> => property('MainPID');
  const report = async (): Promise<Status> =>
    status.parse(JSON.parse(await machine.sh('kit-connector status --json')));
  /** The daemon may be on its way up. */
  const reports = async (what: string, fits: (report: Status) => boolean): Promise<void> =>
    eventually(
      what,
      async () => {
        const { code, output } = await machine.attempt('kit-connector status --json');
        return code === 0 && fits(status.parse(JSON.parse(output)));
      },
      patience_ms,
    );
  const droneIs = (wanted: string) => (report: Status) =>
    report.assets.some(({ type, status }) => type === 'drone' && status === wanted);
  /** Feeds of the drone come several times a second. */
  const goesOn = async (): Promise<void> => {
    const { accepted } = (await report()).outbox;
    await reports('messages go on', ({ outbox }) => outbox.accepted > accepted + 5);
  };

  test('a radio that is plugged in after the start is opened, lost with its cable and found again, by the same process', async () => {
    const pid = await mainPid();
    expect(Number(pid)).toBeGreaterThan(1);
    expect((await machine.attempt('test -e /dev/ttyACM0')).code).toBe(1);
    await plugInVehicle(machine);
    await reports('the drone is online', droneIs('online'));
    await unplugVehicle(machine);
    await eventually(
      'the device is gone',
      async () => (await machine.attempt('test -e /dev/ttyACM0')).code === 1,
    );
    await reports('the drone is offline', droneIs('offline'));
    await plugInVehicle(machine);
    await reports('the drone is back', droneIs('online'));
    expect(await mainPid()).toBe(pid);
  });

  test('messages go on through jumps of the clock, and the watchdog has no cause to act', async () => {
    const [pid, restarts] = [await mainPid(), await property('NRestarts')];
    const now_s = (await machine.sh('date +%s')).trim();
    for (const jump of ['2036-01-01', '2001-01-01', `@${now_s}`]) {
      await machine.sh(`date --set='${jump}'`);
      await goesOn();
      expect((await report()).uptime_s).toBeLessThan(3_600);
    }
    expect([await mainPid(), await property('NRestarts')]).toEqual([pid, restarts]);
    expect((await report()).outbox.balanced).toBe(true);
  });

  test('a daemon that the kernel ends for its memory is started again with its buffer whole', async () => {
    const before = await report();
    const restarts = await property('NRestarts');
    expect(before.outbox.buffered).toBeGreaterThan(0);
    await machine.sh(`systemctl set-property --runtime ${unit} MemoryMax=40M`);
    await eventually(
      'it was ended for its memory',
      async () =>
        (await machine.attempt(`journalctl --unit=${unit} --output=cat | grep -q "result 'oom-kill'"`))
          .code === 0,
      patience_ms,
    );
    await machine.sh(`systemctl set-property --runtime ${unit} MemoryMax=400M`);
    await reports('it serves again', ({ outbox }) => outbox.buffered > 0);
    expect(Number(await property('NRestarts'))).toBeGreaterThan(Number(restarts));
    const after = await report();
    expect(after.outbox.buffered).toBeGreaterThanOrEqual(before.outbox.buffered);
    expect(after.outbox.balanced).toBe(true);
    await reports('the drone is online', droneIs('online'));
  });

  test('a link reports the delay and the loss that the kernel puts on it, and is offline when nothing passes', async () => {
    const link = (fits: (link: Status['links'][number]) => boolean) => (report: Status) =>
      report.links.some((each) => each.name === 'wan0' && fits(each));
    const wire = 'ip netns exec internet tc qdisc replace dev far root netem';
    await machine.sh(`ip netns add internet && ip -n internet link set lo up
for target in 198.18.0.1 198.18.0.2; do ip -n internet addr add $target/32 dev lo; done
ip link add wan0 type veth peer far netns internet
ip -n internet addr add 100.64.0.1/24 dev far && ip -n internet link set far up
ip addr add 100.64.0.2/24 dev wan0 && ip link set wan0 up && ip route add default via 100.64.0.1
modprobe sch_netem && ${wire} delay 300ms`);
    await reports(
      'the delay is seen',
      link(({ status, latency_ms }) => status === 'online' && (latency_ms ?? 0) >= 300),
    );
    await machine.sh(`${wire} delay 300ms loss 40%`);
    await reports(
      'the loss is seen',
      link(({ packet_loss_pct }) => (packet_loss_pct ?? 0) > 5),
    );
    await machine.sh(`${wire} loss 100%`);
    await reports(
      'the link is offline',
      link(({ status }) => status === 'offline'),
    );
    await machine.sh(`${wire} delay 10ms`);
    await reports(
      'the link is back',
      link(({ status }) => status === 'online'),
    );
    expect((await report()).outbox.balanced).toBe(true);
  });

  test('a disk whose writes fail costs no live message and is named, and the buffer is whole on the next disk that works', async () => {
    const table = (how: string): string => `dmsetup suspend --noflush flaky
echo "0 131072 ${how}" | dmsetup load flaky && dmsetup resume flaky`;
    await machine.sh(`modprobe loop && modprobe dm-flakey
truncate --size=64M /var/flaky.img && losetup /dev/loop7 /var/flaky.img
echo '0 131072 linear /dev/loop7 0' | dmsetup create flaky && mke2fs -q -t ext4 /dev/mapper/flaky
systemctl stop ${unit} && mount /dev/mapper/flaky ${state_dir}
chown kit-connector:kit-connector ${state_dir} && systemctl start ${unit}`);
    await reports('it buffers on the new disk', ({ outbox }) => outbox.buffered > 5);
    const pid = await mainPid();
    await machine.sh(table('flakey /dev/loop7 0 0 3600 1 error_writes'));
    await reports('the disk is named', ({ degraded }) =>
      degraded.some((reason) => /disk|buffer/i.test(reason)),
    );
    await goesOn();
    expect(await mainPid()).toBe(pid);
    await machine.sh(`systemctl stop ${unit}; umount ${state_dir}; ${table('linear /dev/loop7 0')}
e2fsck -fy /dev/mapper/flaky; mount /dev/mapper/flaky ${state_dir} && systemctl start ${unit}`);
    await reports(
      'it buffers again',
      ({ outbox, degraded }) => outbox.buffered > 5 && !degraded.some((reason) => /disk/i.test(reason)),
    );
    expect((await report()).outbox.balanced).toBe(true);
  });
});
