/** What the doctor finds on the way to the broker and there, and that the kit's session is none the worse for it. */
import { randomUUID } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect, connectAsync } from 'mqtt';
import { describe, expect, onTestFinished, test } from 'vitest';
import { checkBrokerSession, useOfKit } from '../../../../src/cli/doctor/broker-session.ts';
import { checkNetwork, noAnswer, ownFinding, validityFinding } from '../../../../src/cli/doctor/network.ts';
import { texts } from '../../../../src/cli/doctor/texts.ts';
import type { BrokerConfig } from '../../../../src/kit/config/broker.ts';
import { startMosquitto } from '../../../support/brokers/broker.ts';
import { startTinyproxy } from '../../../support/brokers/proxies.ts';
import { makeCertificates, makeChain } from '../../../support/certificates.ts';
import { peerMissing } from '../../../support/peers.ts';
import { startScriptedBroker } from '../../../support/brokers/scripted-broker.ts';
import { makeDirectory } from '../../../support/temporary.ts';
import { freePort } from '../../../support/ports.ts';
import { brokerOptions } from '../../../support/brokers/broker-options.ts';

const never = new AbortController().signal;
const holding = (text: string): unknown => expect.stringContaining(text);

const kit_id = randomUUID();

function optionsFor(url: string, changes: Partial<BrokerConfig> = {}): BrokerConfig {
  return { ...brokerOptions(url, { username: kit_id, protocol: 'auto' }), ack: 'auto', ...changes };
}

async function levelsOf(findings: Promise<readonly { level: string; what: string }[]>) {
  return (await findings).map(({ level, what }) => `${level} ${what}`);
}

test('an unknown host name and a closed port are reported with their remedies', async () => {
  expect(await checkNetwork(optionsFor('mqtt://nowhere.invalid:1883'), never)).toMatchObject([
    { level: 'fail', what: 'dns', remedy: holding('broker.url') },
  ]);
  expect(await checkNetwork(optionsFor(`mqtt://127.0.0.1:${await freePort()}`), never)).toMatchObject([
    { level: 'fail', what: 'broker tcp', remedy: holding('the port is closed') },
  ]);
  // No route leads there for TCP.
  expect(await checkNetwork(optionsFor('mqtt://255.255.255.255:1883'), never)).toMatchObject([
    { level: 'fail', what: 'broker tcp', remedy: texts.check_links },
  ]);
});

test.each([
  ['that fails, as with DNSSEC and a wrong clock', 2, texts.check_name_server],
  ['that refuses, as over the link of another provider', 5, texts.change_name_server],
  ['that does not answer', undefined, texts.check_name_and_link],
  ['that does not run', 'closed', texts.set_name_server],
] as const)('a name server %s is told from the others', async (_, rcode, remedy) => {
  const server = createSocket('udp4').bind(0, '127.0.0.1');
  await once(server, 'listening');
  server.on('message', (question, { port }) => {
    if (typeof rcode === 'number')
      server.send(
        Buffer.from([...question.subarray(0, 2), 0x81, 0x80 | rcode, ...question.subarray(4)]),
        port,
      );
  });
  const resolver = new Resolver({ timeout: rcode === undefined ? 50 : 60_000, tries: 1 });
  resolver.setServers([`127.0.0.1:${server.address().port}`]);
  if (rcode === 'closed') await new Promise<void>((resolve) => server.close(() => resolve()));
  else onTestFinished(() => void server.close());
  expect(await noAnswer('broker.example.com', resolver)).toMatchObject({
    level: 'fail',
    what: 'dns',
    remedy,
  });
});

test('a certificate is judged by the day on which it ends', () => {
  const now_ms = Date.UTC(2026, 10, 21);
  const at = (days: number) =>
    validityFinding({ valid_to: new Date(now_ms + days * 86_400_000).toUTCString() }, now_ms);
  expect(at(-1)).toMatchObject({ level: 'fail', finding: 'expired on 2026-11-20' });
  expect(at(10)).toMatchObject({ level: 'warn', finding: 'expires on 2026-12-01' });
  expect(at(60).level).toBe('ok');
  expect(validityFinding({ valid_to: '' }, now_ms).level).toBe('warn');
});

describe.skipIf(peerMissing('openssl'))('the certificate of the kit', () => {
  test('a client certificate is judged like that of the broker', async () => {
    const dir = await makeDirectory();
    const { client, expired } = await makeCertificates(dir, kit_id);
    const read = async (file: string) => ownFinding(await readFile(file, 'utf8'), Date.now());
    // The certificates of the tests are made for two days.
    expect(await read(client.cert)).toMatchObject({ level: 'warn', finding: holding('expires on') });
    expect(await read(expired.cert)).toMatchObject({ level: 'fail', finding: holding('it expired on') });
    expect(ownFinding('no PEM', Date.now())).toMatchObject({ level: 'fail', what: 'client certificate' });
  });
});

describe.skipIf(peerMissing('mosquitto', 'openssl', 'tinyproxy'))('through a proxy', () => {
  test('the proxy and the certificate of the broker behind it are judged, and what it refuses is named', async () => {
    const dir = await makeDirectory();
    const { ca, server } = await makeCertificates(dir, kit_id);
    const broker = await startMosquitto({ tls: { ca, pair: server } });
    const open = await startTinyproxy(dir);
    const narrow = await startTinyproxy(dir, { ports: [443] });
    const through = (port: number, changes: Partial<BrokerConfig> = {}): BrokerConfig =>
      optionsFor(broker.url, { proxy: { kind: 'http', host: '127.0.0.1', port }, ...changes });
    onTestFinished(async () => {
      for (const each of [broker, open, narrow]) await each.stop();
    });
    const trusting = through(open.port, { ca: await readFile(ca, 'utf8') });
    expect(await levelsOf(checkNetwork(trusting, never))).toEqual([
      'ok proxy tcp',
      'ok proxy',
      'ok broker tls',
      'warn broker certificate',
    ]);
    expect(await levelsOf(checkBrokerSession(useOfKit(kit_id), trusting, never))).toContain(
      'ok broker login',
    );
    expect(await checkNetwork(through(narrow.port), never)).toMatchObject([
      { what: 'proxy tcp' },
      {
        level: 'fail',
        what: 'proxy',
        finding: holding('answered 403'),
        remedy: holding('this host and port'),
      },
    ]);
  });
});

describe.skipIf(peerMissing('mosquitto', 'mosquitto_passwd', 'openssl'))('against a real broker', () => {
  test('a trusted certificate, a foreign authority and an expired certificate are distinguished', async () => {
    const dir = await makeDirectory();
    const certificates = await makeCertificates(dir, kit_id);
    const ca = await readFile(certificates.ca, 'utf8');
    const good = await startMosquitto({ tls: { ca: certificates.ca, pair: certificates.server } });
    const old = await startMosquitto({ tls: { ca: certificates.ca, pair: certificates.expired } });
    try {
      expect(await levelsOf(checkNetwork(optionsFor(good.url, { ca }), never))).toEqual([
        'ok dns',
        'ok broker tcp',
        'ok broker tls',
        // The certificates of the tests are made for two days.
        'warn broker certificate',
      ]);
      const strange = await checkNetwork(optionsFor(good.url), never);
      expect(strange[2]).toMatchObject({
        level: 'fail',
        remedy: holding('broker.ca_file'),
      });
      const expired = await checkNetwork(optionsFor(old.url, { ca }), never);
      expect(expired.slice(2)).toMatchObject([
        { level: 'fail', what: 'broker tls', remedy: holding('install a new certificate') },
        { level: 'fail', what: 'broker certificate', finding: holding('expired on') },
      ]);
    } finally {
      await good.stop();
      await old.stop();
    }
  });

  test.each([
    ['root', { root: -1, intermediate: 2, server: 2 }],
    ['intermediate', { root: 2, intermediate: -1, server: 2 }],
  ])(
    'the %s is named where it has expired, and the certificate of the broker has not',
    async (name, days) => {
      const dir = await makeDirectory();
      const { root, intermediate, server } = await makeChain(dir, days);
      const chain = join(dir, 'fullchain.pem');
      await writeFile(chain, (await readFile(server.cert, 'utf8')) + (await readFile(intermediate, 'utf8')));
      const broker = await startMosquitto({ tls: { ca: root, pair: { cert: chain, key: server.key } } });
      onTestFinished(async () => broker.stop());
      const found = await checkNetwork(optionsFor(broker.url, { ca: await readFile(root, 'utf8') }), never);
      expect(found.slice(2)).toMatchObject([
        { level: 'fail', finding: holding(`its authority the ${name} expired on 20`) },
        { level: 'warn', what: 'broker certificate' },
      ]);
    },
  );

  test('a wrong password is reported, and the right one may read and write the topics of the kit', async () => {
    const broker = await startMosquitto({ passwords: { [kit_id]: 'right' } });
    onTestFinished(async () => broker.stop());
    expect(
      await checkBrokerSession(useOfKit(kit_id), optionsFor(broker.url, { password: 'wrong' }), never),
    ).toMatchObject([{ level: 'fail', what: 'broker login', remedy: holding('broker.password_file') }]);
    for (const protocol of ['auto', '3.1.1'] as const) {
      const found = await checkBrokerSession(
        useOfKit(kit_id),
        optionsFor(broker.url, { password: 'right', protocol }),
        never,
      );
      expect(found.map(({ level }) => level)).toEqual(['ok', 'ok', protocol === 'auto' ? 'ok' : 'warn']);
    }
  });

  test('a topic without write permission is named', async () => {
    const broker = await startMosquitto({ acl: `user ${kit_id}\ntopic read k1/${kit_id}/down/#\n` });
    onTestFinished(async () => broker.stop());
    expect(await checkBrokerSession(useOfKit(kit_id), optionsFor(broker.url), never)).toMatchObject([
      { level: 'ok' },
      { level: 'ok', what: 'broker rights down' },
      { level: 'fail', what: 'broker rights up', remedy: holding(`k1/${kit_id}/up/#`) },
    ]);
  });

  test.each(['auto', '3.1.1'] as const)(
    'where the broker takes the user name for the client id, what waits for the kit still waits afterwards (%s)',
    async (protocol) => {
      const broker = await startMosquitto({ conf: ['use_username_as_clientid true'] });
      const session = {
        clientId: kit_id,
        username: kit_id,
        clean: false,
        protocolVersion: 5,
        properties: { sessionExpiryInterval: 600 },
      } as const;
      onTestFinished(async () => broker.stop());
      const before = await connectAsync(broker.url, session);
      await before.subscribeAsync(`k1/${kit_id}/down/#`, { qos: 1 });
      await before.endAsync();
      const cloud = await connectAsync(broker.url, { username: 'cloud' });
      await cloud.publishAsync(`k1/${kit_id}/down/sync`, 'a task', { qos: 1 });
      await cloud.endAsync();

      const found = await checkBrokerSession(useOfKit(kit_id), optionsFor(broker.url, { protocol }), never);
      expect(found.map(({ level }) => level)).toEqual(['ok', 'ok', protocol === 'auto' ? 'ok' : 'warn']);

      const after = connect(broker.url, session);
      const received = await new Promise<string>((resolve) => {
        after.once('message', (_topic, payload) => resolve(payload.toString()));
      });
      await after.endAsync();
      expect(received).toBe('a task');
    },
  );
});

describe('A broker that closes connections without a reason', () => {
  test('is tried with 3.1.1 when it closes MQTT 5 connections, and the setting is named', async () => {
    const broker = await startScriptedBroker({
      onConnect: (peer) => (peer.version === 5 ? peer.hangUp() : peer.connack()),
    });
    onTestFinished(async () => broker.close());
    const found = await checkBrokerSession(useOfKit(kit_id), optionsFor(broker.url), never);
    expect(found[0]).toMatchObject({ level: 'ok', finding: holding('MQTT 3.1.1') });
    expect(found[1]).toMatchObject({ level: 'ok', finding: holding('protocol: 3.1.1') });
  });

  test('has the setting named when it closes connections of both versions', async () => {
    const broker = await startScriptedBroker({ onConnect: (peer) => peer.hangUp() });
    onTestFinished(async () => broker.close());
    expect(await checkBrokerSession(useOfKit(kit_id), optionsFor(broker.url), never)).toMatchObject([
      { level: 'fail', what: 'broker login', remedy: holding('broker.protocol') },
    ]);
  });
});
