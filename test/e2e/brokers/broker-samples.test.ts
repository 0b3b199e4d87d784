/** The access rules that we give to those who run the broker: kit A must not read or write what is kit B's. */
import { connectAsync, type MqttClient } from 'mqtt';
import { generate } from 'mqtt-packet';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { payload_bytes_max } from '../../../src/cloud/read-message.ts';
import { startMosquitto } from '../../support/brokers/broker.ts';
import { makeCertificates, type Certificates, type KeyPair } from '../../support/certificates.ts';
import { peerMissing } from '../../support/peers.ts';
import { testDirectory } from '../../support/test-directory.ts';
import { freePort } from '../../support/ports.ts';

const samples = new URL('../../../systemd/broker/', import.meta.url);
const kit_a = '6f1c2d8a-0b7e-4a55-9c1e-1a2b3c4d5e6f';
const kit_b = '7a2d3e9b-1c8f-4b66-8d2f-2b3c4d5e6f70';
const not_authorised = 0x87;

interface Site {
  readonly a: MqttClient;
  readonly b: MqttClient;
  readonly cloud: MqttClient;
  readonly connect: (pair: KeyPair, client_id: string) => Promise<MqttClient>;
  /** At the listener of the services. */
  readonly connectService: (pair: KeyPair, client_id: string) => Promise<MqttClient>;
  readonly pair_a: KeyPair;
  readonly pair_cloud: KeyPair;
}

/** The settings of each listener of the sample, without files, ports and what keeps data on disk. */
async function listenersOf(): Promise<{ readonly kits: string[]; readonly services: string[] }> {
  const [, kits, services] = (await readFile(new URL('mosquitto.conf', samples), 'utf8'))
    .split(/^listener /mu)
    .map((part) =>
      part.split('\n').filter((line) => !/^(#|\d+$|\w*file |persistence|autosave|$)/u.test(line)),
    );
  if (!kits || !services) throw new Error('the sample has not two listeners');
  return { kits, services };
}

/** Mosquitto with our sample files; only ports and paths are the test's own. */
async function withSite(fn: (site: Site) => Promise<void>): Promise<void> {
  const dir = await testDirectory();
  const [of_kits, of_services] = [join(dir, 'kits'), join(dir, 'services')];
  await mkdir(of_kits);
  await mkdir(of_services);
  const certificates: Certificates = await makeCertificates(of_kits, kit_a);
  const authority: Certificates = await makeCertificates(of_services, 'cloud');
  const acl = await readFile(new URL('mosquitto.acl', samples), 'utf8');
  const { kits, services } = await listenersOf();
  const { ca, server } = certificates;
  const port = await freePort();
  const of_listener = [`cafile ${authority.ca}`, `certfile ${server.cert}`, `keyfile ${server.key}`];
  const conf = [...kits, `listener ${port} 127.0.0.1`, ...of_listener, ...services];
  const broker = await startMosquitto({ conf, acl, tls: { ca, pair: server, client_ca: true } });
  const clients: MqttClient[] = [];
  const connectTo = async (url: string, pair: KeyPair, clientId: string): Promise<MqttClient> => {
    const [trust, cert, key] = await Promise.all(
      [ca, pair.cert, pair.key].map(async (file) => readFile(file)),
    );
    if (!trust || !cert || !key) throw new Error('a file is missing');
    const tls = { ca: trust, cert, key };
    const client = await connectAsync(url, { ...tls, clientId, protocolVersion: 5, reconnectPeriod: 0 });
    clients.push(client);
    client.on('error', () => undefined);
    return client;
  };
  const connect: Site['connect'] = async (...of) => connectTo(broker.url, ...of);
  const connectService: Site['connect'] = async (...of) => connectTo(`mqtts://localhost:${port}`, ...of);
  try {
    const a = await connect(certificates.client, kit_a);
    const b = await connect(await certificates.clientOf(kit_b), kit_b);
    const cloud = await connectService(authority.client, 'cloud');
    const pairs = { pair_a: certificates.client, pair_cloud: authority.client };
    await fn({ a, b, cloud, connect, connectService, ...pairs });
  } finally {
    for (const client of clients) await client.endAsync(true);
    await broker.stop();
  }
}

/** The topics that a client gets from now on. */
function topicsOf(client: MqttClient): string[] {
  const topics: string[] = [];
  client.on('message', (topic) => topics.push(topic));
  return topics;
}

/** Publishes a last message that the client may read, and waits until it has come: what was not delivered before never will be. */
async function drained(cloud: MqttClient, client: MqttClient, kit_id: string): Promise<void> {
  const last = `k1/${kit_id}/down/sync`;
  const arrived = new Promise<void>((resolve) => {
    client.on('message', (topic) => {
      if (topic === last) resolve();
    });
  });
  await cloud.publishAsync(last, '{}', { qos: 1 });
  await arrived;
}

describe.skipIf(peerMissing('mosquitto', 'openssl'))('the access rules for mosquitto', () => {
  it('let a kit write below its own up and nowhere else', async () => {
    await withSite(async ({ a, cloud }) => {
      const seen = topicsOf(cloud);
      await cloud.subscribeAsync('k1/+/up/#', { qos: 1 });
      const foreign = [
        `k1/${kit_b}/up/state`,
        `k1/${kit_b}/down/task/1`,
        `k1/${kit_a}/down/ack`,
        'k1/x',
        kit_a,
      ];
      for (const topic of foreign) {
        await expect(a.publishAsync(topic, 'x', { qos: 1 })).rejects.toMatchObject({ code: not_authorised });
      }
      await a.publishAsync(`k1/${kit_a}/up/feed/x/gps`, 'x', { qos: 1 });
      await expect.poll(() => seen).toEqual([`k1/${kit_a}/up/feed/x/gps`]);
    });
  });

  it('leave no room for a message that the service would discard', async () => {
    await withSite(async ({ a, cloud, connect, pair_a }) => {
      const seen = topicsOf(cloud);
      await cloud.subscribeAsync('k1/+/up/#', { qos: 1 });
      const topic = `k1/${kit_a}/up/feed/x/gps`;
      await a.publishAsync(topic, Buffer.alloc(payload_bytes_max), { qos: 1 });
      await expect.poll(() => seen).toEqual([topic]);
      const ended = new Promise<void>((resolve) => void a.once('close', () => resolve()));
      // Not by `publish`: the library keeps the limit that the broker announces.
      a.stream.write(
        generate(
          {
            cmd: 'publish',
            topic,
            payload: Buffer.alloc(2 * payload_bytes_max),
            qos: 1,
            messageId: 7,
            dup: false,
            retain: false,
            properties: {},
          },
          { protocolVersion: 5 },
        ),
      );
      await ended;
      await (await connect(pair_a, kit_a)).publishAsync(topic, 'x', { qos: 1 });
      await expect.poll(() => seen).toEqual([topic, topic]);
    });
  });

  it('let a kit read below its own down and nowhere else, whatever it subscribes to', async () => {
    await withSite(async ({ a, b, cloud }) => {
      const seen = topicsOf(a);
      const own = `k1/${kit_a}/down/#`;
      for (const filter of [own, `k1/${kit_b}/down/#`, `k1/${kit_b}/up/#`, 'k1/+/down/#', '#']) {
        // Some brokers refuse here and some grant and then deliver nothing: what counts is what is delivered.
        await a.subscribeAsync(filter, { qos: 1 }).catch(() => undefined);
      }
      await cloud.publishAsync(`k1/${kit_b}/down/task/1`, 'x', { qos: 1 });
      await b.publishAsync(`k1/${kit_b}/up/state`, 'x', { qos: 1 });
      await drained(cloud, a, kit_a);
      expect(new Set(seen)).toEqual(new Set([`k1/${kit_a}/down/sync`]));
    });
  });

  it('do not let a kit take the session of another by its client id', async () => {
    await withSite(async ({ b, connect, pair_a }) => {
      const impostor = await connect(pair_a, kit_b);
      await b.publishAsync(`k1/${kit_b}/up/state`, 'x', { qos: 1 });
      expect(b.connected).toBe(true);
      await expect(impostor.publishAsync(`k1/${kit_b}/up/state`, 'x', { qos: 1 })).rejects.toMatchObject({
        code: not_authorised,
      });
    });
  });
});

describe.skipIf(peerMissing('mosquitto', 'openssl'))('the listener of the services at mosquitto', () => {
  it('lets replicas with one user share a subscription, each with a separate session', async () => {
    await withSite(async ({ a, connectService, pair_cloud }) => {
      const replicas = [
        await connectService(pair_cloud, 'kit-service-1'),
        await connectService(pair_cloud, 'kit-service-2'),
      ];
      const topics = replicas.map(topicsOf);
      for (const replica of replicas) await replica.subscribeAsync('$share/kits/k1/+/up/#', { qos: 1 });
      const sent = Array.from({ length: 20 }, (_, n) => `k1/${kit_a}/up/feed/${n}/gps`);
      for (const topic of sent) await a.publishAsync(topic, 'x', { qos: 1 });
      await expect.poll(() => topics.flat().sort()).toEqual(sent.toSorted());
      expect(replicas.map(({ connected }) => connected)).toEqual([true, true]);
      expect(topics.every((its) => its.length > 0)).toBe(true);
    });
  });

  it('refuses the certificate of a kit, whatever client id it takes', async () => {
    await withSite(async ({ cloud, connectService, pair_a }) => {
      await expect(connectService(pair_a, 'cloud')).rejects.toBeInstanceOf(Error);
      await cloud.publishAsync(`k1/${kit_a}/down/sync`, '{}', { qos: 1 });
      expect(cloud.connected).toBe(true);
    });
  });
});

/** As EMQX reads its file: the first rule that matches the user, the action and the topic counts. */
async function emqxAllows(user: string, action: 'publish' | 'subscribe', topic: string): Promise<boolean> {
  const text = await readFile(new URL('emqx-acl.conf', samples), 'utf8');
  const rules = [
    ...text.matchAll(/^\{(allow|deny), (all|\{username, "([^"]+)"\})(?:, (\w+), \[(.*)\])?\}\.$/gm),
  ];
  expect(rules.length).toBe(text.split('\n').filter((line) => line.startsWith('{')).length);
  for (const [, verdict, who, name, what, topics] of rules) {
    const filters = [...(topics ?? '').matchAll(/"([^"]+)"/g)].map(([, filter]) => filter ?? '');
    const applies =
      topics === undefined || (what === action && filters.some((each) => covers(each, user, topic)));
    if ((who === 'all' || name === user) && applies) return verdict === 'allow';
  }
  return false;
}

function covers(filter: string, user: string, topic: string): boolean {
  const levels = filter.replaceAll('${username}', user).split('/');
  const asked = topic.split('/');
  return (
    levels.every((level, at) => {
      if (level === '#') return true;
      return (level === '+' && asked[at] !== '#') || level === asked[at];
    }) &&
    (levels.at(-1) === '#' || levels.length === asked.length)
  );
}

describe('the access rules for EMQX', () => {
  it.each([
    [kit_a, 'publish', `k1/${kit_a}/up/state`, true],
    [kit_a, 'subscribe', `k1/${kit_a}/down/#`, true],
    [kit_a, 'publish', `k1/${kit_b}/up/state`, false],
    [kit_a, 'publish', `k1/${kit_a}/down/ack`, false],
    [kit_a, 'subscribe', `k1/${kit_b}/down/#`, false],
    [kit_a, 'subscribe', `k1/${kit_b}/up/#`, false],
    [kit_a, 'subscribe', 'k1/+/down/#', false],
    [kit_a, 'subscribe', '#', false],
    ['cloud', 'subscribe', 'k1/+/up/#', true],
    ['cloud', 'publish', `k1/${kit_b}/down/task/1`, true],
    ['cloud', 'publish', `k1/${kit_b}/up/state`, false],
  ] as const)('tell whether %s may %s %s: %s', async (user, action, topic, allowed) => {
    expect(await emqxAllows(user, action, topic)).toBe(allowed);
  });
});
