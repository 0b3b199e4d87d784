/** The power driver as a whole: its conformance, its README, and a real upsd. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { texts } from '../../../../drivers/power/texts.ts';
import { power } from '../../../../drivers/power/power.ts';
import { driverConformance } from '../../../support/drivers/driver-conformance.ts';
import { driverLab } from '../../../support/drivers/driver-lab.ts';
import { eventually } from '../../../support/eventually.ts';
import { dyingWithUs, findProgram, peerMissing } from '../../../support/peers.ts';
import { withDirectory } from '../../../support/temporary.ts';
import { type FakeUpsd, startFakeUpsd } from '../../../fakes/services/fake-upsd.ts';
import { freePort } from '../../../support/ports.ts';

describe('The power driver', () => {
  let upsd: FakeUpsd | undefined;
  driverConformance({
    driver: power,
    options: () => ({ interval_s: 1, nut: { port: upsd?.port ?? 1 } }),
    peer: {
      async start() {
        upsd ??= await startFakeUpsd();
        upsd.upses.set('kit', new Map([['ups.status', 'OL']]));
        await upsd.restore();
      },
      lose: async () => upsd?.lose(),
      restore: async () => upsd?.restore(),
      stop: async () => upsd?.lose(),
    },
    without: { loss: 'it has no asset of its own; see the tests with a upsd', commands: 'it has none' },
  });
});

it('reports the batteries of this machine, unknown when there is none', async () => {
  const lab = driverLab(power, {});
  await lab.until('a reading', () => lab.said.length > 0);
  expect(Object.keys(lab.kit).sort()).toEqual(['battery', 'battery_charging']);
  await lab.stop();
});

it('requires a password file with a user name', () => {
  expect(() => power.configure({ nut: { username: 'kit' } })).toThrow(/password_file/u);
});

/** Debian keeps the drivers of NUT here, and its wrapper of upsd insists on a system-wide configuration. */
const nut_dir = '/lib/nut';

/** A real upsd with the driver that plays a UPS from a file. */
async function withNut(fn: (nut: RealNut) => Promise<void>): Promise<void> {
  await withDirectory(async (dir) => {
    const port = await freePort();
    const etc = join(dir, 'etc');
    await mkdir(etc);
    const files = {
      'nut.conf': 'MODE=standalone\n',
      'ups.conf': '[kit]\n driver = dummy-ups\n port = kit.dev\n mode = dummy-loop\n',
      'upsd.conf': `LISTEN 127.0.0.1 ${port}\nMAXAGE 3\n`,
      'upsd.users': '',
    };
    for (const [name, text] of Object.entries(files)) {
      await writeFile(join(etc, name), text);
      await chmod(join(etc, name), 0o640);
    }
    const set = async (variables: Readonly<Record<string, string>>): Promise<void> =>
      writeFile(
        join(etc, 'kit.dev'),
        Object.entries(variables)
          .map(([name, value]) => `${name}: ${value}\n`)
          .join(''),
      );
    await set({ 'ups.status': 'OL CHRG', 'battery.charge': '87', 'battery.runtime': '5400' });
    const env = {
      ...process.env,
      NUT_CONFPATH: etc,
      NUT_STATEPATH: dir,
      NUT_ALTPIDPATH: dir,
      NUT_PIDPATH: dir,
    };
    const start = (...command: readonly string[]) => {
      const [file, ...args] = [...dyingWithUs(), ...command, '-F', '-u', userInfo().username];
      return spawn(file, args, { stdio: 'ignore', env });
    };
    const driver = start(join(nut_dir, 'dummy-ups'), '-a', 'kit');
    const server = start(join(nut_dir, 'upsd'));
    try {
      await fn({
        port,
        set,
        stall: () => void driver.kill('SIGSTOP'),
        wake: () => void driver.kill('SIGCONT'),
      });
    } finally {
      for (const child of [driver, server]) {
        const exited = once(child, 'exit');
        child.kill('SIGCONT');
        child.kill('SIGKILL');
        if (child.exitCode === null && child.signalCode === null) await exited;
      }
    }
  });
}

interface RealNut {
  readonly port: number;
  set(variables: Readonly<Record<string, string>>): Promise<void>;
  /** The driver hangs. */
  stall(): void;
  wake(): void;
}

describe.skipIf(peerMissing('upsd') || findProgram('upsd') === undefined)('with a real upsd', () => {
  it('follows a discharge, reports unknown while the driver hangs, and recovers', async () => {
    await withNut(async (nut) => {
      const open = () => driverLab(power, { interval_s: 1, nut: { port: nut.port } });
      let lab = open();
      // upsd needs a moment to listen and to hear of its UPS; the supervisor would try again likewise.
      await eventually('the UPS is known', async () => {
        const isUp = lab.until('the UPS', () => lab.kit.battery === 87).then(() => true);
        const isKnown = await Promise.race([
          isUp,
          lab.ended.then(
            () => false,
            () => false,
          ),
        ]);
        if (!isKnown) lab = open();
        return isKnown;
      });
      expect(lab.kit).toMatchObject({ battery: 87, battery_charging: true });
      expect(lab.shown.facts['runtime_s']).toBe(5_400);
      await nut.set({ 'ups.status': 'OB DISCHRG LB', 'battery.charge': '11' });
      await lab.until('discharge', () => lab.kit.battery === 11 && lab.kit.battery_charging === false);
      // At the start the driver of the UPS may not have reported anything to upsd.
      const warnings = lab.log.at('warn').filter((sentence) => sentence !== texts.ups_data_lost);
      expect(warnings).toEqual([texts.battery_low]);
      nut.stall();
      await lab.until('stale', () => lab.shown.facts['reason'] === texts.data_stale);
      expect(lab.kit.battery).toBe(11);
      nut.wake();
      await lab.until('back', () => lab.shown.facts['reason'] === undefined);
      await lab.stop();
      await expect(driverLab(power, { nut: { port: nut.port, ups: 'other' } }).ended).rejects.toThrow(
        texts.ups_known('kit'),
      );
    });
  });
});
