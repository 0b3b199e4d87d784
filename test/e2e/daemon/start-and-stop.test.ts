/** A daemon loads what it needs and no more, tells systemd how it is, and stops in time whatever hangs. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { drivers as built_in } from '../../../drivers/index.ts';
import { journal_socket } from '../../../src/platform/systemd/journal.ts';
import { fakeSystemd } from '../../fakes/services/fake-systemd.ts';
import { startMosquitto } from '../../support/brokers/broker.ts';
import { type Child, startChild } from '../../support/child.ts';
import { diskMissing, withTmpfs } from '../../support/disk/disks.ts';
import { eventually } from '../../support/eventually.ts';
import { command_file, type Kit, withKit } from '../../support/kit/kit.ts';
import { peerMissing } from '../../support/peers.ts';
import { startProxy } from '../../support/brokers/proxy.ts';
import { texts } from '../../../src/kit/hub/texts.ts';

const nobody = { url: 'mqtt://127.0.0.1:1' };
const hook = fileURLToPath(new URL('../../support/kit/module-list-process.ts', import.meta.url));

/** Plays with a daemon that has `env` in its environment, and ends it afterwards. */
async function withDaemon(
  kit: Kit,
  env: Readonly<Record<string, string>>,
  play: (daemon: Child) => Promise<void>,
): Promise<void> {
  const daemon = startChild(['--import', hook, command_file, 'run', '--config', kit.config_file], { env });
  try {
    await daemon.printed(/kit-connector started/);
    await play(daemon);
  } finally {
    await daemon.end('SIGKILL');
  }
}

/** Plays with a daemon whose driver does not stop when it is told to, and a cloud that has seen its drone. */
async function withDeafDriver(
  play: (scene: {
    readonly kit: Kit;
    readonly cloud: Awaited<ReturnType<Kit['listen']>>;
    readonly daemon: Child;
  }) => Promise<void>,
): Promise<void> {
  const broker = await startMosquitto();
  try {
    await withKit({ rehearsed: true }, async (kit) => {
      await kit.configure({ broker: { url: broker.url }, drivers: [kit.rehearse({ deaf: true })] });
      const cloud = await kit.listen(broker.url);
      const daemon = await kit.start();
      await cloud.until('the drone', ({ data }) => data?.['status'] === 'online');
      await play({ kit, cloud, daemon });
    });
  } finally {
    await broker.stop();
  }
}

describe('a daemon that starts', () => {
  it('loads the drivers that are configured, and of the others and their libraries nothing', async () => {
    await withKit({ rehearsed: false }, async (kit) => {
      const list = join(kit.dir, 'modules');
      await kit.configure({ broker: nobody, drivers: [kit.gateway] });
      await withDaemon(kit, { LOADED_MODULES: list, NOTIFY_SOCKET: '', JOURNAL_STREAM: '' }, async () => {
        await eventually('the gateway is up', async () =>
          (await kit.status()).drivers.every(({ state }) => state === 'up'),
        );
        const loaded = readFileSync(list, 'utf8').split('\n');
        const from = (folder: string): readonly string[] =>
          loaded.filter((url) => url.includes(`/${folder}/`));
        expect(from('drivers/gateway')).not.toEqual([]);
        expect(from('node_modules/mqtt')).not.toEqual([]);
        const others = built_in.filter(({ name }) => name !== 'gateway').map(({ name }) => `drivers/${name}`);
        // The uplink itself asks the kernel for its route, with koffi.
        const libraries = ['onvif', 'node-mavlink', 'serialport', 'dbus-native', 'net-snmp', 'aedes'];
        for (const folder of [...others, ...libraries.map((name) => `node_modules/${name}`)])
          expect({ folder, loaded: from(folder) }).toEqual({ folder, loaded: [] });
      });
    });
  });
});

describe('a daemon under systemd', () => {
  it('notifies systemd of ready, watchdog, reload and stop', async () => {
    await withKit({ rehearsed: false }, async (kit) => {
      await kit.configure({ broker: nobody, drivers: [kit.gateway] });
      const systemd = await fakeSystemd(join(kit.dir, 'notify'));
      const env = { NOTIFY_SOCKET: systemd.path, WATCHDOG_USEC: '600000' };
      try {
        await withDaemon(kit, env, async (daemon) => {
          await systemd.until(
            /^STATUS=opening the buffer$/,
            /^STATUS=.*not connected \([^)]+\), messages are kept \| .*\d assets? online, \d+ messages waiting$/,
            /^READY=1$/,
            /^WATCHDOG=1$/,
            /^WATCHDOG=1$/,
          );
          expect(existsSync(kit.socket)).toBe(true);
          daemon.send('SIGHUP');
          await systemd.until(/^RELOADING=1\nMONOTONIC_USEC=\d+$/, /^READY=1$/, /^WATCHDOG=1$/);
          await kit.configure({ broker: nobody, drivers: [{ driver: 'nobody' }] });
          daemon.send('SIGHUP');
          await systemd.until(
            /^RELOADING=1/,
            /^STATUS=.*configuration was rejected \(1 fault\)/,
            /^READY=1$/,
          );
          expect((await daemon.end('SIGTERM')).code).toBe(0);
          expect(systemd.read().map(String)).toContain('STOPPING=1');
        });
      } finally {
        systemd.leave();
      }
    });
  });

  it('does not beat while its event loop hangs', async () => {
    await withKit({ rehearsed: false }, async (kit) => {
      await kit.configure({ broker: nobody, drivers: [kit.gateway] });
      const systemd = await fakeSystemd(join(kit.dir, 'notify'));
      try {
        await withDaemon(kit, { NOTIFY_SOCKET: systemd.path, WATCHDOG_USEC: '600000' }, async (daemon) => {
          await systemd.until(/^WATCHDOG=1$/);
          daemon.send('SIGSTOP');
          await eventually('the last beat was heard', () => systemd.read().length === 0);
          daemon.send('SIGCONT');
          await systemd.until(/^WATCHDOG=1$/);
        });
      } finally {
        systemd.leave();
      }
    });
  });

  it('writes prose with priorities where no journal listens natively, and so does a start that fails', async ({
    skip,
  }) => {
    skip(existsSync(journal_socket), 'the journal of this machine would get the lines');
    await withKit({ rehearsed: false }, async (kit) => {
      await kit.configure({ broker: nobody, drivers: [kit.gateway] });
      expect(await journalOf(kit, 'uplink: broker unreachable')).toEqual(
        expect.arrayContaining([
          expect.stringMatching(/^<6>kit-connector started {2}version=\S+ {2}kit_id=/),
          expect.stringMatching(/^<4>uplink: broker unreachable; buffering \(connection refused/),
        ]),
      );
      await kit.configure({ broker: nobody, drivers: [{ driver: 'nobody' }] });
      expect(await journalOf(kit, 'nobody')).toEqual([
        expect.stringMatching(/^<3>.*drivers\[0\]\.driver: there is no driver "nobody"/),
      ]);
    });
  });
});

/** Standard error of a daemon for which it is the journal, once `words` are in it. No journal listens on this machine's test. */
async function journalOf(kit: Kit, words: string): Promise<readonly string[]> {
  const file = join(kit.dir, 'journal');
  await using stream = await open(file, 'w');
  const { dev, ino } = await stream.stat();
  const env = { ...process.env, JOURNAL_STREAM: `${dev}:${ino}` };
  const daemon = spawn(process.execPath, [command_file, 'run', '--config', kit.config_file], {
    stdio: ['ignore', 'ignore', stream.fd],
    env,
  });
  const ended = once(daemon, 'close');
  try {
    await eventually(words, () => readFileSync(file, 'utf8').includes(words));
  } finally {
    daemon.kill('SIGTERM');
    await ended;
  }
  return readFileSync(file, 'utf8').trimEnd().split('\n');
}

describe.skipIf(peerMissing('mosquitto') || diskMissing())(
  'a daemon that is asked to stop in trouble',
  () => {
    it('ends in time although a driver is deaf, the broker has fallen silent and the disk is full', async () => {
      const broker = await startMosquitto();
      const proxy = await startProxy(broker.port);
      try {
        await withTmpfs(16, async (state_dir) => {
          await withKit({ rehearsed: true }, async (kit) => {
            await kit.configure({
              state_dir,
              outbox: { free_disk_min_mb: 0 },
              broker: { url: `mqtt://127.0.0.1:${proxy.port}` },
              drivers: [{ ...kit.rehearse({ deaf: true, gps_hz: 20 }), name: 'deaf' }, kit.gateway],
            });
            const cloud = await kit.listen(broker.url);
            const daemon = await kit.start();
            await cloud.until('a position', ({ channel }) => channel.endsWith('/gps'));
            fill(join(state_dir, 'of-others'));
            proxy.stall();
            await eventually('the disk is known to be full', async () => {
              const { degraded } = await kit.status();
              return degraded.some((reason) => reason.includes('the disk'));
            });
            const { code, stderr } = await daemon.end('SIGTERM');
            expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
            expect(daemon.output()).toContain(texts.driver_abandoned);
            expect(daemon.log().at(-1)?.msg).toBe('kit-connector stopped');
          });
        });
      } finally {
        await proxy.close();
        await broker.stop();
      }
    });

    it('keeps its session for the farewell although dispatches arrive meanwhile', async () => {
      await withDeafDriver(async ({ kit, cloud, daemon }) => {
        let hasEnded = false;
        const ended = daemon.end('SIGTERM').finally(() => (hasEnded = true));
        const order = { asset_id: kit.drone(), command_name: 'work', payload: { ms: 0 } };
        await eventually('it ends', async () => {
          const [task_id, created_at] = [randomUUID(), new Date().toISOString()];
          await cloud.send({ kind: 'task', task_id }, { task_id, ...order, created_at });
          return hasEnded;
        });
        expect((await ended).code).toBe(0);
        const farewell = await cloud.until('the farewell', ({ data }) => data?.['online'] === false);
        expect(farewell.data).toMatchObject({ reason: 'stopped' });
        expect(cloud.on('state').filter(({ data }) => data?.['online'] === true)).toHaveLength(1);
      });
    });

    it('publishes its offline presence although a driver does not stop', async () => {
      await withDeafDriver(async ({ kit, cloud, daemon }) => {
        expect((await daemon.end('SIGTERM')).code).toBe(0);
        const farewell = await cloud.until('the farewell', ({ data }) => data?.['online'] === false);
        expect(farewell.data).toMatchObject({ reason: 'stopped' });
        expect(cloud.on(`asset/${kit.drone()}`).at(-1)?.data).toMatchObject({ status: 'offline' });
      });
    });
  },
);

/** Takes all the room that is left. */
function fill(file: string): void {
  for (let size = 1 << 20; size >= 512; size /= 2) {
    try {
      for (;;) writeFileSync(file, Buffer.alloc(size), { flag: 'a' });
    } catch {
      // No room for so much at a time: a smaller piece may still fit.
    }
  }
}
