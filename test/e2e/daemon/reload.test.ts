/** SIGHUP: a daemon that runs takes over another configuration, one driver at a time, and says what it did. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { connect, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { texts as app_texts } from '../../../src/kit/app/texts.ts';
import { texts as cli_texts } from '../../../src/cli/texts.ts';
import { floodMavlink } from '../../faults/support/attackers.ts';
import { startMosquitto } from '../../support/brokers/broker.ts';
import type { Child } from '../../support/child.ts';
import { eventually } from '../../support/eventually.ts';
import { type Kit, withKit } from '../../support/kit/kit.ts';
import { seededRandom } from '../../support/random.ts';
import { peerMissing } from '../../support/peers.ts';
import { freePort } from '../../support/ports.ts';
import { texts } from '../../../src/kit/hub/texts.ts';

const nobody = { url: 'mqtt://127.0.0.1:1' };

/** Reloads, and answers the facts of the line that tells what came of it. */
async function reload(daemon: Child): Promise<Readonly<Record<string, unknown>>> {
  const told = (): ReturnType<Child['log']> =>
    daemon.log().filter(({ msg }) => msg.startsWith('configuration reloaded: '));
  const before = told().length;
  daemon.send('SIGHUP');
  await eventually('the reload is told', () => told().length > before);
  const { level: _, time: __, msg: ___, ...facts } = told().at(-1) ?? { level: '', time: '', msg: '' };
  return facts;
}

async function drivers(kit: Kit): Promise<ReadonlyMap<string, { state: string; since: string }>> {
  const { drivers } = await kit.status();
  return new Map(drivers.map(({ name, state, since }) => [name, { state, since }]));
}

describe.skipIf(peerMissing('mosquitto'))('a reload', () => {
  it('adds, removes and changes drivers one by one, and removes the assets of removed ones at the cloud', async () => {
    const broker = await startMosquitto();
    try {
      await withKit({ rehearsed: true }, async (kit) => {
        const red = { ...kit.rehearse({ keys: ['red'] }), name: 'red' };
        const blue = { ...kit.rehearse({ keys: ['blue'] }), name: 'blue' };
        const settings = { broker: { url: broker.url } };
        await kit.configure({ ...settings, drivers: [kit.gateway, red, blue] });
        const cloud = await kit.listen(broker.url);
        const daemon = await kit.start();
        const assetOf = async (key: string): Promise<void> =>
          void (await cloud.until(
            `${key} online`,
            ({ channel, data }) => channel === `asset/${kit.drone(key)}` && data?.['status'] === 'online',
          ));
        await Promise.all([assetOf('red'), assetOf('blue')]);
        const before = await drivers(kit);

        const green = { ...kit.rehearse({ keys: ['green'] }), name: 'green' };
        const more_red = { ...kit.rehearse({ keys: ['red', 'ruby'] }), name: 'red' };
        await kit.configure({ ...settings, drivers: [kit.gateway, more_red, green] });
        expect(await reload(daemon)).toEqual({
          drivers_added: 'green',
          drivers_removed: 'blue',
          drivers_changed: 'red',
        });
        await Promise.all([assetOf('ruby'), assetOf('green')]);
        await eventually(
          'blue is taken back',
          () => cloud.on(`asset/${kit.drone('blue')}`).at(-1)?.data === null,
        );
        const after = await drivers(kit);
        expect([...after.keys()].toSorted()).toEqual(['gateway', 'green', 'red']);
        expect(after.get('gateway')).toEqual(before.get('gateway'));
        expect(after.get('red')?.since).not.toBe(before.get('red')?.since);
        const keys = (await kit.status()).assets.map(({ key }) => key);
        expect(keys).toEqual(expect.arrayContaining(['red', 'ruby', 'green']));
        expect(keys).toHaveLength(4);
        expect(await reload(daemon)).toEqual({ changed: 'nothing' });
        const lines = daemon
          .log()
          .flatMap(({ msg }) => (msg.includes('configuration reloaded') ? [msg] : []));
        expect(lines).toEqual([
          'configuration reloaded: added green; removed blue; changed red',
          'configuration reloaded: nothing changed',
        ]);
        expect((await drivers(kit)).get('red')).toEqual(after.get('red'));
        expect((await daemon.end('SIGTERM')).code).toBe(0);
      });
    } finally {
      await broker.stop();
    }
  });

  it('offers what the new policy allows, at once, and holds feeds to their new rates', async () => {
    const broker = await startMosquitto();
    try {
      await withKit({ rehearsed: true }, async (kit) => {
        const settings = { broker: { url: broker.url }, drivers: [kit.rehearse({ gps_hz: 10 })] };
        await kit.configure({ ...settings, feeds: { rates_hz: { gps: 0.001 } } });
        const cloud = await kit.listen(broker.url);
        const daemon = await kit.start();
        const names = (): readonly unknown[] => {
          const { commands = [] } = cloud.on(`asset/${kit.drone()}/commands`).at(-1)?.data ?? {};
          return Array.isArray(commands) ? commands.map((each) => (each as { name: string }).name) : [];
        };
        await eventually('three commands', () => names().length === 3);
        const gps = (): number => cloud.heard.filter(({ channel }) => channel.endsWith('/gps')).length;
        await eventually('the only position', () => gps() === 1);
        await kit.configure({
          ...settings,
          commands: { max_risk: 'medium' },
          feeds: { rates_hz: { gps: 20 } },
          log: { level: 'warn' },
        });
        daemon.send('SIGHUP');
        await eventually('a command less', () => names().length === 2);
        expect(names()).not.toContain('land');
        await eventually('positions', () => gps() > 5);
        const refused = await kit.run('task', 'falcon', 'land');
        expect(refused.code).not.toBe(0);
        expect(refused.stdout + refused.stderr).toContain('commands.max_risk');
        await daemon.end('SIGTERM');
        expect(daemon.log().map(({ msg }) => msg)).not.toContain('kit-connector stopped');
      });
    } finally {
      await broker.stop();
    }
  });
});

describe('a reload without a broker', () => {
  it('of a file with faults names each of them and changes nothing', async () => {
    await withKit({ rehearsed: false }, async (kit) => {
      await kit.configure({ broker: nobody, drivers: [kit.gateway] });
      const daemon = await kit.start();
      await eventually('the gateway is up', async () => (await drivers(kit)).get('gateway')?.state === 'up');
      const before = await drivers(kit);
      await kit.configure({
        broker: nobody,
        feeds: { rates_hz: { gsp: 1 } },
        drivers: [{ driver: 'gateway', options: { interval_s: 'often' } }, { driver: 'mavlnik' }],
      });
      daemon.send('SIGHUP');
      await daemon.printed(/did you mean \\"mavlink\\"/);
      const errors = daemon.log().filter(({ level }) => level === 'error');
      expect(errors[0]).toMatchObject({
        faults: 3,
        msg: cli_texts.configuration_rejected,
      });
      expect(errors.slice(1).map(({ msg }) => msg)).toEqual([
        expect.stringContaining('feeds.rates_hz.gsp: there is no feed of this name'),
        expect.stringMatching(/config\.yaml:1:\d+ drivers\[0\]\.options\.interval_s: is "often"/),
        expect.stringContaining('there is no driver "mavlnik"; did you mean "mavlink"?'),
      ]);
      expect(await drivers(kit)).toEqual(before);
      const rejected = app_texts.configuration_rejected(3);
      expect((await kit.status()).degraded).toContain(rejected);

      await kit.configure({ broker: nobody, drivers: [kit.gateway] });
      expect(await reload(daemon)).toEqual({ changed: 'nothing' });
      expect((await kit.status()).degraded).not.toContain(rejected);
    });
  });

  it('is done as often as needed when it is requested many times at once, and then stops cleanly', async () => {
    await withKit({ rehearsed: false }, async (kit) => {
      await kit.configure({ broker: nobody, drivers: [kit.gateway] });
      const daemon = await kit.start();
      for (let at = 0; at < 20; at += 1) daemon.send('SIGHUP');
      await daemon.printed(/configuration reloaded/);
      await kit.configure({ broker: nobody, drivers: [kit.gateway, kit.links] });
      daemon.send('SIGHUP');
      await eventually('the links are there', async () => (await drivers(kit)).has('links'));
      daemon.send('SIGHUP');
      expect((await daemon.end('SIGTERM')).code).toBe(0);
    });
  });

  it('of a driver that is flooded is done each time, and leaves its neighbour and the stop alone', async () => {
    await withKit({ rehearsed: false }, async (kit) => {
      const [udp, tcp] = [await freePort(), await freePort()];
      const configure = async (offline_after_s: number): Promise<void> => {
        const links = [
          { kind: 'udp_listen', host: '127.0.0.1', port: udp },
          { kind: 'tcp_listen', host: '127.0.0.1', port: tcp },
        ];
        const mavlink = { driver: 'mavlink', options: { links, offline_after_s } };
        await kit.configure({ broker: nobody, drivers: [kit.gateway, mavlink] });
      };
      await configure(5);
      const daemon = await kit.start();
      const flood = new AbortController();
      const ended = floodLinks({ udp, tcp }, flood.signal);
      try {
        await daemon.printed(/"name":"Quadrotor \d+"[^\n]*came online/u);
        for (const offline_after_s of [6, 7]) {
          await configure(offline_after_s);
          expect(await reload(daemon)).toEqual({ drivers_changed: 'mavlink' });
        }
        expect((await daemon.end('SIGTERM')).code).toBe(0);
        expect(daemon.output()).not.toContain(texts.driver_abandoned);
        expect(daemon.log().filter(({ msg }) => msg.startsWith('gateway '))).toHaveLength(1);
      } finally {
        flood.abort();
        await ended;
      }
    });
  });
});

/** Frames of ever new vehicles over UDP, and what is no frame over TCP, which dials again when it is cut off. */
async function floodLinks(
  { udp, tcp }: { readonly udp: number; readonly tcp: number },
  signal: AbortSignal,
): Promise<void> {
  floodMavlink(udp, seededRandom(1), signal);
  let stream: Socket | undefined;
  const noise = Buffer.alloc(64_000, 0xfd);
  while (!signal.aborted) {
    if (!stream || stream.destroyed) {
      stream = connect(tcp, '127.0.0.1');
      stream.on('error', () => undefined);
    }
    if (stream.writableLength < 1_000_000) stream.write(noise);
    await nextTurn();
  }
  stream?.destroy();
}
