/**
 * The package for arm64 on a whole emulated machine of that kind: installed, started, with a drone on a serial port, messages
 * and tasks over a real broker, and its lines in the journal. One machine lives through all of it.
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { buildGateway } from '../support/systemd/packages.ts';
import { targetNamed } from '../../systemd/package/target.ts';
import { eventually } from '../support/eventually.ts';
import { type Machine, startMachine } from '../support/systemd/machine.ts';
import { arm64, machineMissing } from '../support/systemd/machine-kind.ts';
import {
  broker_url,
  dispatchInside,
  receivedInside,
  subscribeInside,
} from '../support/systemd/machine-cloud.ts';
import {
  type MachineDaemon,
  daemonOn,
  isDrone,
  patience_ms,
  unit,
} from '../support/systemd/machine-daemon.ts';
import { plugInVehicle, unplugVehicle } from '../support/systemd/machine-vehicle.ts';

const out = join(import.meta.dirname, '../../dist/test-arm64');
const config = '/etc/kit-connector/config.yaml';

describe.skipIf(machineMissing(arm64))('the package on an arm64 machine', () => {
  let machine: Machine;
  let daemon: MachineDaemon;

  beforeAll(async () => {
    const target = targetNamed('arm64');
    machine = await startMachine(await buildGateway({ target, out, compression: 'none' }), arm64);
    daemon = daemonOn(machine);
  });
  afterAll(async () => machine?.stop());
  beforeEach(({ onTestFailed }) => {
    onTestFailed(async () => {
      const { output } = await machine.attempt(`journalctl --unit=${unit} --unit=vehicle --lines=60`);
      console.error(output);
    });
  });

  test('boots, and the service is ready with an id that the first start made', async () => {
    expect(await machine.sh('uname -m')).toBe('aarch64');
    await daemon.reports('it serves', ({ kit_id }) => /^[0-9a-f-]{36}$/.test(kit_id));
    expect(await machine.sh('cat /var/lib/kit-connector/kit-id')).toBe((await daemon.report()).kit_id);
    const [job_us, ready_us] = [
      Number(await daemon.property('InactiveExitTimestampMonotonic')),
      Number(await daemon.property('ActiveEnterTimestampMonotonic')),
    ];
    console.info(`ready ${Math.round((ready_us - job_us) / 1_000)} ms after its start job, emulated`);
  });

  test('is installed by one command and runs', async () => {
    await machine.sh('dpkg --purge kit-connector && test ! -e /var/lib/kit-connector');
    await machine.sh('dpkg --install /root/kit-connector*.deb');
    expect(await machine.sh(`systemctl is-active ${unit}`)).toBe('active');
  });

  test('publishes the messages of a drone on a serial port to a broker', async () => {
    const { kit_id } = await daemon.report();
    await subscribeInside(machine, kit_id);
    await machine.sh(`cat >${config} <<'END'
broker: { url: '${broker_url}' }
drivers:
  - { driver: gateway, options: { interval_s: 1 } }
  - driver: mavlink
    options: { links: [{ kind: serial, path: /dev/ttyACM0, baud: [57600] }] }
  - driver: links
END
systemctl restart ${unit}`);
    await plugInVehicle(machine);
    await daemon.hearsDrone();
    await daemon.reports('messages are delivered', ({ outbox, uplink }) => {
      return uplink.state === 'connected' && outbox.delivered > 0;
    });
    const { links, assets } = await daemon.report();
    expect(links).toBeDefined();
    const drone = assets.find(({ type }) => type === 'drone');
    await eventually(
      'the broker passed its messages on',
      async () => (await receivedInside(machine, `k1/${kit_id}/up/feed/${drone?.id}/.*`)).length > 0,
      patience_ms,
    );
    expect(await receivedInside(machine, `k1/${kit_id}/up/state`)).toContainEqual(
      expect.stringContaining('"online":true'),
    );
  });

  test('carries out a task of the cloud and reports its end to the cloud', async () => {
    const { kit_id, assets } = await daemon.report();
    const task_id = randomUUID();
    const asset_id = assets.find(({ type }) => type === 'drone')?.id ?? '';
    await dispatchInside(machine, { kit_id, task_id, asset_id, command_name: 'arm' });
    const reports = async (): Promise<readonly string[]> =>
      receivedInside(machine, `k1/${kit_id}/up/task/${task_id}`);
    await eventually(
      'its end is reported',
      async () => (await reports()).some((line) => line.includes('"status":"failed"')),
      patience_ms,
    );
    expect(await machine.sh(`journalctl --output=cat TASK=${task_id}`)).not.toBe('');
  });

  test('ends a task with a reason and keeps it over a restart', async () => {
    const drone = (await daemon.report()).assets.find(({ type }) => type === 'drone');
    const { code } = await machine.attempt(`kit-connector task '${drone?.id}' arm`);
    expect(code).not.toBe(0);
    await daemon.reports('the task has ended', ({ tasks }) => tasks.failed === 2);
    await machine.sh(`systemctl restart ${unit}`);
    await daemon.reports('it is still known', ({ tasks }) =>
      tasks.recent.some(({ command_name, status }) => command_name === 'arm' && status === 'failed'),
    );
  });

  test('finds its lines in the journal by their fields, and native parts load', async () => {
    expect(await machine.sh('journalctl --output=cat DRIVER=mavlink | wc -l')).not.toBe('0');
    const { kit_id } = await daemon.report();
    expect(await machine.sh(`journalctl --output=cat KIT=${kit_id} | wc -l`)).not.toBe('0');
    const log = await machine.sh(`journalctl --unit=${unit} --output=cat`);
    expect(log).not.toMatch(/cannot be loaded|Illegal instruction|core dumped|Watchdog timeout/);
    const restarts = await daemon.property('NRestarts');
    await unplugVehicle(machine);
    await daemon.reports('the drone is offline', isDrone('offline'));
    expect(await daemon.property('NRestarts')).toBe(restarts);
  });
});
