/** The test peers themselves: what a fault test relies on must be true of them. */
import { connectAsync, type IClientOptions, type MqttClient } from 'mqtt';
import { readFile } from 'node:fs/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { packBatch } from '../../../src/contract/batch/pack.ts';
import { writeEnvelope } from '../../../src/contract/envelope.ts';
import { within } from '../../../src/platform/time.ts';
import { startMosquitto } from '../../support/brokers/broker.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { peerMissing } from '../../support/peers.ts';
import { startProxy } from '../../support/brokers/proxy.ts';
import { startSubscriber } from '../../support/brokers/subscriber.ts';
import { withDirectory } from '../../support/temporary.ts';

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});
function later<T>(thing: T, cleanup: (thing: T) => Promise<unknown>): T {
  cleanups.push(async () => cleanup(thing));
  return thing;
}
async function client(url: string, options: IClientOptions = {}): Promise<MqttClient> {
  const opened = await connectAsync(url, { reconnectPeriod: 0, connectTimeout: 3_000, ...options }, false);
  opened.on('error', () => undefined);
  return later(opened, async () => opened.endAsync(true));
}
async function closing(opened: MqttClient): Promise<void> {
  await new Promise<void>((resolve) => {
    opened.once('close', resolve);
  });
}
const topic = 'k1/6f1c2d8a-0b7e-4a55-9c1e-1a2b3c4d5e6f/up/feed/a/gps';
const numbered = (seq: number, data = '{}'): string => writeEnvelope({ epoch: 1, seq, time_ms: 0 }, data);

describe.skipIf(peerMissing('mosquitto'))('the broker', () => {
  it('restarts on its port after a kill', async () => {
    const broker = later(await startMosquitto(), async (each) => each.stop());
    const before = await client(broker.url);
    const closed = closing(before);
    await broker.kill('SIGKILL');
    await closed;
    await broker.start();
    const after = await client(broker.url);
    expect(after.connected).toBe(true);
  });

  it.skipIf(peerMissing('mosquitto_passwd'))('asks for the password that is set at the moment', async () => {
    const broker = later(await startMosquitto({ passwords: { kit: 'old' } }), async (each) => each.stop());
    await expect(client(broker.url, { username: 'kit', password: 'new' })).rejects.toThrow('Not authorized');
    await broker.setPasswords({ kit: 'new' });
    const right = await client(broker.url, { username: 'kit', password: 'new' });
    expect(right.connected).toBe(true);
  });

  it.skipIf(peerMissing('openssl'))(
    'shows a certificate that a client can check, or an expired one',
    async () => {
      await withDirectory(async (dir) => {
        const { ca, server, expired } = await makeCertificates(dir, 'kit');
        const trust = { ca: await readFile(ca), protocolVersion: 5 } as const;
        const good = later(await startMosquitto({ tls: { ca, pair: server } }), async (each) => each.stop());
        expect((await client(good.url, trust)).connected).toBe(true);
        const stale = later(await startMosquitto({ tls: { ca, pair: expired } }), async (each) =>
          each.stop(),
        );
        await expect(client(stale.url, trust)).rejects.toMatchObject({ code: 'CERT_HAS_EXPIRED' });
      });
    },
  );
});

describe.skipIf(peerMissing('mosquitto'))('the subscriber', () => {
  it('counts single messages and those in batches, and reports which numbers came and which came twice', async () => {
    const broker = later(await startMosquitto(), async (each) => each.stop());
    const subscriber = later(await startSubscriber(broker.port), async (each) => each.stop());
    const publisher = await client(broker.url);
    for (const seq of [1, 2, 4, 2]) await publisher.publishAsync(topic, numbered(seq), { qos: 1 });
    const items = [5, 6, 9].map((seq) => ({
      channel: 'feed/a/gps',
      epoch: 1,
      seq,
      time_ms: 0,
      data: '{"lat":1}',
    }));
    const batch = Buffer.from(packBatch(items, { historical: true }));
    await publisher.publishAsync('k1/6f1c2d8a-0b7e-4a55-9c1e-1a2b3c4d5e6f/up/batch', batch, { qos: 1 });
    const seen = await subscriber.until(({ messages }) => messages === 7, 3_000);
    expect(seen).toMatchObject({ messages: 7, unique: 6, duplicates: 1, packets: 5 });
    expect(await subscriber.ranges()).toEqual({
      1: [
        [1, 2],
        [4, 6],
        [9, 9],
      ],
    });
  });

  it('acknowledges what it stored when it plays the cloud', async () => {
    const broker = later(await startMosquitto(), async (each) => each.stop());
    const kit_id = '6f1c2d8a-0b7e-4a55-9c1e-1a2b3c4d5e6f';
    later(await startSubscriber(broker.port, { cloud_of: kit_id }), async (each) => each.stop());
    const kit = await client(broker.url);
    await kit.subscribeAsync(`k1/${kit_id}/down/#`, { qos: 1 });
    const message = new Promise<string>((resolve) => {
      kit.once('message', (_, payload) => resolve(payload.toString()));
    });
    await kit.publishAsync(topic, numbered(3), { qos: 1 });
    expect(JSON.parse(await message)).toEqual({ epoch: 1, ranges: [[3, 3]] });
  });

  it('subscribes again when the broker comes back', async () => {
    const broker = later(await startMosquitto(), async (each) => each.stop());
    const subscriber = later(await startSubscriber(broker.port, { client_id: 'w' }), async (each) =>
      each.stop(),
    );
    await broker.kill();
    await broker.start();
    await broker.logged(/connected from [^\n]* as w/, 5_000);
    const publisher = await client(broker.url);
    const heard = async (): Promise<number> => {
      await publisher.publishAsync(topic, numbered(1), { qos: 1 });
      return (await subscriber.report()).messages;
    };
    while ((await heard()) === 0);
    expect((await subscriber.report()).unique).toBe(1);
  });
});

describe.skipIf(peerMissing('mosquitto'))('the proxy', () => {
  async function behindProxy(shape = {}) {
    const broker = later(await startMosquitto(), async (each) => each.stop());
    return later(await startProxy(broker.port, shape), async (each) => each.close());
  }

  it('delays both ways', async () => {
    const proxy = await behindProxy({ delay_up_ms: 40, delay_down_ms: 30 });
    const publisher = await client(`mqtt://127.0.0.1:${proxy.port}`);
    const before_ms = performance.now();
    await publisher.publishAsync(topic, 'x', { qos: 1 });
    expect(performance.now() - before_ms).toBeGreaterThanOrEqual(70);
  });

  it('lets a narrow link carry no more than its rate', async () => {
    const proxy = await behindProxy({ rate_up_bytes: 100_000 });
    const publisher = await client(`mqtt://127.0.0.1:${proxy.port}`);
    const before_ms = performance.now();
    await publisher.publishAsync(topic, Buffer.alloc(30_000), { qos: 1 });
    expect(performance.now() - before_ms).toBeGreaterThanOrEqual(300);
    expect(proxy.counters.up_bytes).toBeGreaterThan(30_000);
  });

  it('is silent while stalled and passes what it held back afterwards', async () => {
    const proxy = await behindProxy();
    const publisher = await client(`mqtt://127.0.0.1:${proxy.port}`);
    proxy.stall();
    const published = publisher.publishAsync(topic, 'x', { qos: 1 });
    expect(await within(200, published)).toBeUndefined();
    expect(publisher.connected).toBe(true);
    proxy.resume();
    expect(await within(2_000, published)).toBeDefined();
  });

  it('cuts, refuses and kicks', async () => {
    const proxy = await behindProxy();
    const url = `mqtt://127.0.0.1:${proxy.port}`;
    const first = await client(url);
    const closed = closing(first);
    proxy.cut();
    await closed;
    proxy.setAdmission('refuse');
    await expect(client(url)).rejects.toMatchObject({ code: 'ECONNRESET' });
    proxy.setAdmission('kick');
    const kicked = await client(url);
    if (kicked.connected) await closing(kicked);
    expect(kicked.connected).toBe(false);
    proxy.setAdmission('pass');
    expect((await client(url)).connected).toBe(true);
  });
});
