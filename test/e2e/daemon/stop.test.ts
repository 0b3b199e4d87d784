/** The daemon is told to stop while something is under way: a task, a broker that has fallen silent, a buffer that was damaged. */
import { randomUUID } from 'node:crypto';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buffer_file } from '../../../src/kit/app/app.ts';
import { startMosquitto, type Broker } from '../../support/brokers/broker.ts';
import type { Cloud } from '../../support/kit/cloud.ts';
import { withKit } from '../../support/kit/kit.ts';
import { peerMissing } from '../../support/peers.ts';
import { sleep } from '../../../src/platform/time.ts';
import { startProxy } from '../../support/brokers/proxy.ts';
import { texts } from '../../../src/kit/outbox/texts.ts';
import { texts as task_texts } from '../../../src/kit/tasks/texts.ts';

/** Ten positions would have come meanwhile. */
const quiet_ms = 500;

/** How many messages were heard once what was under way has come. */
async function settled(cloud: Cloud): Promise<number> {
  for (let before = -1; before !== cloud.heard.length; await sleep(quiet_ms, new AbortController().signal))
    before = cloud.heard.length;
  return cloud.heard.length;
}

describe.skipIf(peerMissing('mosquitto'))('a daemon that is asked to stop', () => {
  let broker: Broker;
  beforeAll(async () => {
    broker = await startMosquitto();
  });
  afterAll(async () => {
    await broker.stop();
  });

  it('stops the running task and reports it to the cloud before it disconnects', async () => {
    await withKit({ rehearsed: true }, async (kit) => {
      await kit.configure({ broker: { url: broker.url }, drivers: [kit.rehearse()] });
      const cloud = await kit.listen(broker.url);
      const daemon = await kit.start();
      await cloud.until(
        'the drone',
        ({ channel, data }) => channel === `asset/${kit.drone()}` && data?.['status'] === 'online',
      );
      const task_id = randomUUID();
      const created_at = new Date().toISOString();
      const order = {
        task_id,
        asset_id: kit.drone(),
        command_name: 'work',
        payload: { ms: 30_000 },
        created_at,
      };
      await cloud.send({ kind: 'task', task_id }, order);
      await cloud.until('running', ({ channel }) => channel === `task/${task_id}`);
      const { code } = await daemon.end('SIGTERM');
      expect(code).toBe(0);
      await cloud.until('the farewell', ({ data }) => data?.['online'] === false);
      expect(cloud.on(`task/${task_id}`).at(-1)?.data).toMatchObject({
        status: 'failed',
        result: { error: task_texts.interrupted_by_stop },
      });
      expect(cloud.on(`asset/${kit.drone()}`).at(-1)?.data).toMatchObject({ status: 'offline' });
      expect(cloud.heard.at(-1)?.channel).toBe('state');
    });
  });

  it('ends in time and cleanly although the broker has fallen silent, and keeps what it could not send', async () => {
    await withKit({ rehearsed: true }, async (kit) => {
      const proxy = await startProxy(broker.port);
      try {
        await kit.configure({
          broker: { url: `mqtt://127.0.0.1:${proxy.port}` },
          drivers: [kit.rehearse({ gps_hz: 20 })],
        });
        const cloud = await kit.listen(broker.url);
        const daemon = await kit.start();
        await cloud.until('a position', ({ channel }) => channel.endsWith('/gps'));
        proxy.stall();
        const before = await settled(cloud);
        // A daemon that needs longer than its ten seconds says so and ends with another code.
        const { code, stderr } = await daemon.end('SIGTERM');
        expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
        expect(cloud.heard).toHaveLength(before);
        proxy.cut();
        await kit.start();
        const last = await cloud.until(
          'that it had been stopped',
          ({ channel, data }) =>
            channel === `event/${kit.drone()}/asset_status` && data?.['status'] === 'offline',
        );
        expect(last.epoch).toBe(cloud.heard[0]?.epoch);
      } finally {
        await proxy.close();
      }
    });
  });
});

describe('a buffer file that is damaged', () => {
  it('is moved aside at the start, as log and status report, and the kit continues', async () => {
    await withKit({ rehearsed: false }, async (kit) => {
      await kit.configure({ broker: { url: 'mqtt://127.0.0.1:1' }, drivers: [kit.gateway] });
      const state = join(kit.dir, 'state');
      await mkdir(state);
      await writeFile(join(state, buffer_file), 'no database at all '.repeat(1_000));
      const daemon = await kit.start();
      const { degraded, outbox } = await kit.status();
      expect(degraded).toHaveLength(1);
      expect(degraded[0]).toMatch(
        /^the buffer file was damaged \(.+\): 0 messages saved, .+ lost; it is kept as .+/,
      );
      expect(outbox.health.state).toBe('ok');
      const kept = (await readdir(state)).filter((name) => degraded[0]?.endsWith(name));
      expect(kept).toHaveLength(1);
      const said = daemon.log().filter(({ msg }) => msg.includes('damaged'));
      expect(said).toHaveLength(1);
    });
  });
});

describe.skipIf(peerMissing('mosquitto'))('a buffer file that cannot be opened', () => {
  it('is reported in log and status, while live messages continue and the kit stops in order', async () => {
    const broker = await startMosquitto();
    try {
      await withKit({ rehearsed: false }, async (kit) => {
        await kit.configure({ broker: { url: broker.url }, drivers: [kit.gateway] });
        // A directory where the file should be: as good as a disk that refuses, also for root.
        await mkdir(join(kit.dir, 'state', buffer_file), { recursive: true });
        const cloud = await kit.listen(broker.url);
        const daemon = await kit.start();
        await cloud.until('telemetry', ({ channel }) => channel === 'telemetry');
        await cloud.until('the gateway', ({ data }) => data?.['type'] === 'gateway');
        const said = daemon.log().filter(({ level }) => level === 'error');
        expect(said.map(({ msg }) => msg)).toEqual([texts.disk_failed]);
        const { degraded, outbox } = await kit.status();
        expect(degraded).toHaveLength(1);
        expect(degraded[0]).toMatch(/^disk write failed: .+; messages are kept in memory/);
        expect(outbox).toMatchObject({ balanced: true, health: { state: 'failing' } });
        expect((await daemon.end('SIGTERM')).code).toBe(0);
        await cloud.until('the farewell', ({ data }) => data?.['online'] === false);
      });
    } finally {
      await broker.stop();
    }
  });
});
