/** The location driver as a whole: conformance, README, a gpsd that misbehaves, and a real one. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { line_chars_max, lines_per_s_max, location, texts } from '../../../../drivers/location/location.ts';
import { type FakeGpsd, startFakeGpsd } from '../../../fakes/services/fake-gpsd.ts';
import { type GpsReceiver, startGpsReceiver } from '../../../fakes/gps-receiver.ts';
import { driverConformance } from '../../../support/drivers/driver-conformance.ts';
import { eventually } from '../../../support/eventually.ts';
import { hubLab } from '../../../support/kit/hub-lab.ts';
import { dyingWithUs, peerMissing, program } from '../../../support/peers.ts';
import { withDirectory } from '../../../support/temporary.ts';
import { freePort } from '../../../support/ports.ts';

const fix_line = '{"class":"TPV","device":"/dev/a","mode":3,"lat":59.3293,"lon":18.0686,"altHAE":68.4}\r\n';

describe('the location driver', () => {
  let gpsd: FakeGpsd | undefined;
  driverConformance({
    driver: location,
    options: () => ({ gpsd: { port: gpsd?.port ?? 1 } }),
    peer: {
      async start() {
        gpsd ??= await startFakeGpsd();
        await gpsd.restore();
      },
      lose: async () => gpsd?.lose(),
      restore: async () => gpsd?.restore(),
      stop: async () => gpsd?.lose(),
    },
    without: { loss: 'it has no asset of its own; see the tests with a gpsd', commands: 'it has none' },
  });
});

it('requires a source', () => {
  expect(() => location.configure({})).toThrow(/give gpsd or manual/u);
});

/** A hub whose clock the test can move on, with the driver in it. */
async function withDriver(
  options: object,
  fn: (lab: ReturnType<typeof hubLab> & { pass: (ms: number) => void }) => Promise<void>,
): Promise<void> {
  await withDirectory(async (dir) => {
    let passed_ms = 0;
    const stamp = () => ({
      time_ms: Date.now() + passed_ms,
      mono_ms: performance.now() + passed_ms,
      synced: true,
    });
    const lab = hubLab({ state_dir: dir, clock: { boot_id: 'test', stamp } });
    void lab.run(location, 'location', { options });
    try {
      await fn({ ...lab, pass: (ms) => (passed_ms += ms) });
    } finally {
      await lab.stop();
    }
  });
}

const manual = { latitude: 10, longitude: 20, altitude_m: 30 };

it('reports the manual position, which is never stale', async () => {
  await withDriver({ manual }, async ({ hub, pass }) => {
    await eventually('up', () => hub.drivers()[0]?.state === 'up');
    pass(100_000);
    expect(hub.kit().location).toMatchObject({ latitude: 10, altitude: 30, source: 'manual', stale: false });
  });
});

describe('with a gpsd that misbehaves', () => {
  let gpsd: FakeGpsd;
  beforeEach(async () => {
    gpsd = await startFakeGpsd();
  });
  afterEach(async () => gpsd.lose());

  it('is down with the reason while gpsd is absent, and the manual position stands', async () => {
    await gpsd.lose();
    await withDriver({ manual, gpsd: { port: gpsd.port } }, async ({ hub }) => {
      await eventually('down', () => hub.drivers()[0]?.state === 'down');
      expect(hub.drivers()[0]?.reason).toMatch(
        /gpsd at 127\.0\.0\.1:\d+: refuses the connection; check that gpsd runs/u,
      );
      expect(hub.kit().location).toMatchObject({ source: 'manual' });
      await gpsd.restore();
      await eventually('up', () => hub.drivers()[0]?.state === 'up');
    });
  });

  it('sends WATCH, and joins lines that arrive in pieces', async () => {
    await withDriver({ gpsd: { port: gpsd.port } }, async ({ hub }) => {
      await eventually('watched', () => gpsd.heard === '?WATCH={"enable":true,"json":true};\n');
      gpsd.say(fix_line.slice(0, 30));
      gpsd.say(fix_line.slice(30));
      await eventually('a fix', () => hub.kit().location?.source === 'satellite');
      expect(hub.kit().location).toMatchObject({ latitude: 59.3293, altitude: 68.4, stale: false });
    });
  });

  // The USB bus was reset: https://github.com/gammu/gammu/issues/198, https://github.com/localdevices/libre360/issues/166
  it('names the receiver that gpsd reads now where the configured one came back under another name', async () => {
    const gps = { port: gpsd.port, device: '/dev/ttyACM0', mute_s: 2 };
    await withDriver({ gpsd: gps }, async ({ hub, log }) => {
      await eventually('up', () => hub.drivers()[0]?.state === 'up');
      gpsd.say(fix_line.replace('/dev/a', '/dev/ttyACM0'));
      await eventually('fix', () => hub.drivers()[0]?.facts['receiver'] === 'fix');
      const reason = texts.other_device('/dev/ttyACM1');
      await eventually('another one', () => {
        gpsd.say(fix_line.replace('/dev/a', '/dev/ttyACM1'));
        return hub.drivers()[0]?.facts['reason'] === reason;
      });
      expect(log.at('warn').filter((sentence) => sentence === reason)).toHaveLength(1);
    });
  });

  it('disconnects from a server that floods it with lines', async () => {
    await withDriver({ gpsd: { port: gpsd.port } }, async ({ hub }) => {
      await eventually('up', () => hub.drivers()[0]?.state === 'up');
      gpsd.say('\n'.repeat(60_000));
      const reason = texts.too_many_lines(lines_per_s_max);
      await eventually('flood', () => hub.drivers()[0]?.reason?.includes(reason) === true);
      await eventually('up again', () => hub.drivers()[0]?.state === 'up');
    });
  });

  it('disconnects from a server that sends an endless line or no greeting', { tags: 'long' }, async () => {
    await withDriver({ gpsd: { port: gpsd.port } }, async ({ hub }) => {
      await eventually('up', () => hub.drivers()[0]?.state === 'up');
      gpsd.greeting = '';
      gpsd.say('x'.repeat(line_chars_max + 1));
      await eventually('line', () => /line exceeds the limit/u.test(hub.drivers()[0]?.reason ?? ''));
      await eventually('silence', () => /sends no greeting/u.test(hub.drivers()[0]?.reason ?? ''));
    });
  });
});

describe.skipIf(peerMissing('gpsd'))('with a real gpsd', () => {
  let receiver: GpsReceiver;
  let gpsd: ChildProcess;
  let port: number;
  beforeEach(async () => {
    receiver = await startGpsReceiver();
    port = await freePort();
    const command = [program('gpsd'), '-N', '-n', '-S', `${port}`, `tcp://127.0.0.1:${receiver.port}`];
    const [file = '', ...args] = [...dyingWithUs(), ...command];
    gpsd = spawn(file, args, { stdio: 'ignore' });
  });
  afterEach(async () => {
    if (gpsd.exitCode === null && gpsd.signalCode === null) {
      const exited = once(gpsd, 'exit');
      gpsd.kill('SIGCONT');
      gpsd.kill('SIGKILL');
      await exited;
    }
    await receiver.stop();
  });
  const options = () => ({ gpsd: { port, mute_s: 2 } });

  it('treats reports that are 45 s late as old, also those before gpsd knows the date', async () => {
    receiver.delay_ms = 45_000;
    receiver.manner = 'mute';
    await withDriver(options(), async ({ hub }) => {
      await eventually('up', () => hub.drivers()[0]?.state === 'up');
      receiver.manner = 'fix3d';
      await eventually('old', () => hub.kit().location?.stale === true);
      expect(hub.kit().location?.source).toBe('satellite_cached');
      expect(hub.location().age_s).toBeGreaterThanOrEqual(45);
      expect(hub.location().reason).toMatch(
        /^the fixes are 4\d s old on arrival; check the clock of the receiver/u,
      );
    });
  });

  it('distinguishes a 3-D fix, a 2-D fix, no fix and a late one', async () => {
    await withDriver(options(), async ({ hub, pass }) => {
      const now = () => hub.kit().location;
      await eventually(
        '3-D',
        () => now()?.source === 'satellite' && typeof now()?.altitude === 'number',
        20_000,
      );
      expect(now()?.latitude).toBeCloseTo(59.3293, 5);
      expect(now()?.longitude).toBeCloseTo(18.0686, 5);
      expect(now()?.altitude).toBeCloseTo(68.4, 1);
      expect(now()?.stale).toBe(false);
      receiver.manner = 'fix2d';
      await eventually('2-D', () => now()?.altitude === null && now()?.source === 'satellite');
      receiver.manner = 'nofix';
      await eventually('none', () => now()?.source === 'satellite_cached');
      expect(now()?.stale).toBe(false);
      expect(hub.drivers()[0]?.facts).toMatchObject({ receiver: 'no fix' });
      receiver.manner = 'fix3d';
      await eventually('again', () => now()?.source === 'satellite');
      receiver.delay_ms = 45_000;
      await eventually('old', () => now()?.source === 'satellite_cached');
      expect(now()?.stale).toBe(false);
      pass(31_000);
      expect(now()).toMatchObject({ source: 'satellite_cached', stale: true });
    });
  });

  it('reports a receiver that sends nothing and lets its fix age', async () => {
    await withDriver(options(), async ({ hub, log, pass }) => {
      await eventually('fix', () => hub.kit().location?.source === 'satellite');
      receiver.manner = 'mute';
      await eventually('mute', () => hub.drivers()[0]?.facts['receiver'] === 'mute');
      expect(hub.kit().location).toMatchObject({ source: 'satellite', stale: false });
      pass(31_000);
      expect(hub.kit().location).toMatchObject({ source: 'satellite_cached', stale: true });
      expect(log.at('warn').filter((sentence) => /sends nothing/u.test(sentence))).toHaveLength(1);
    });
  });

  it('takes what a frozen receiver repeats as no fix', async () => {
    await withDriver(options(), async ({ hub, log }) => {
      await eventually('fix', () => hub.kit().location?.source === 'satellite');
      receiver.manner = 'frozen';
      await eventually('frozen', () => hub.drivers()[0]?.facts['receiver'] === 'frozen');
      expect(hub.kit().location).toMatchObject({ source: 'satellite_cached' });
      expect(log.at('warn').filter((sentence) => sentence === texts.states.frozen)).toHaveLength(1);
      receiver.manner = 'fix3d';
      await eventually('fix again', () => hub.kit().location?.source === 'satellite');
    });
  });

  it('continues after gpsd was frozen, and is down when it is killed', async () => {
    await withDriver(options(), async ({ hub, pass }) => {
      await eventually('fix', () => hub.kit().location?.source === 'satellite');
      gpsd.kill('SIGSTOP');
      await eventually('mute', () => hub.drivers()[0]?.facts['receiver'] === 'mute');
      pass(31_000);
      expect(hub.kit().location).toMatchObject({ source: 'satellite_cached', stale: true });
      pass(-31_000);
      gpsd.kill('SIGCONT');
      await eventually('fix again', () => hub.drivers()[0]?.facts['receiver'] === 'fix');
      expect(hub.kit().location).toMatchObject({ source: 'satellite', stale: false });
      gpsd.kill('SIGKILL');
      await eventually('down', () => hub.drivers()[0]?.state === 'down');
      expect(hub.kit().location).toMatchObject({ source: 'satellite_cached' });
    });
  });
});
