/** The brokers that a kit may meet: with TLS and client certificates, of an authority it does not trust, and of before MQTT 5. */
import { randomUUID } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startEmbeddedBroker } from '../../../src/cli/daemon/embedded-broker.ts';
import { startMosquitto } from '../../support/brokers/broker.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { startCloud } from '../../support/kit/cloud.ts';
import { withKit } from '../../support/kit/kit.ts';
import { peerMissing } from '../../support/peers.ts';
import { testDirectory } from '../../support/test-directory.ts';
import { texts } from '../../../src/kit/uplink/texts.ts';

describe.skipIf(peerMissing('mosquitto', 'openssl'))('over TLS, a kit', () => {
  it('proves with its certificate who it is, and does not speak to a broker that it cannot trust', async () => {
    const dir = await testDirectory();
    await withKit({ rehearsed: false }, async (kit) => {
      const { ca, server, client, clientOf } = await makeCertificates(dir, kit.kit_id);
      const broker = await startMosquitto({ tls: { ca, pair: server, client_ca: true } });
      try {
        const identity = { cert_file: client.cert, key_file: client.key };
        const elsewhere = join(dir, 'other');
        await mkdir(elsewhere);
        const other = await makeCertificates(elsewhere, 'other');
        await kit.configure({
          broker: { url: broker.url, ca_file: other.ca, ...identity },
          drivers: [kit.gateway],
        });
        const wary = await kit.start();
        await wary.printed(/broker unreachable/);
        const warning = wary.log().find(({ msg }) => msg.startsWith('broker unreachable'));
        expect(warning?.['reason']).toMatch(/certificate/);
        expect((await kit.status()).uplink.last_error).toMatch(/certificate/);
        await wary.end('SIGTERM');

        await kit.configure({
          broker: { url: broker.url, ca_file: ca, ...identity },
          drivers: [kit.gateway],
        });
        const pair = await clientOf('cloud');
        const [trust, cert, key] = await Promise.all(
          [ca, pair.cert, pair.key].map(async (file) => readFile(file, 'utf8')),
        );
        const cloud = await startCloud(broker.url, kit.kit_id, { ca: trust!, cert: cert!, key: key! });
        const daemon = await kit.start();
        await cloud.until('the birth', ({ data }) => data?.['online'] === true);
        expect(broker.log()).toMatch(
          new RegExp(`New client connected .* as ${kit.kit_id} \\(.*u'${kit.kit_id}'`),
        );
        await daemon.end('SIGTERM');
        await cloud.until('the farewell', ({ data }) => data?.['online'] === false);
        await cloud.leave();
      } finally {
        await broker.stop();
      }
    });
  });
});

describe('a broker that supports only MQTT 3.1.1', () => {
  it.each(['auto', '3.1.1'])('is served with protocol: %s, tasks included', async (protocol) => {
    const end = new AbortController();
    const { port, closed } = await startEmbeddedBroker(end.signal);
    try {
      await withKit({ rehearsed: true }, async (kit) => {
        const url = `mqtt://127.0.0.1:${port}`;
        await kit.configure({ broker: { url, protocol }, drivers: [kit.rehearse()] });
        const cloud = await startCloud(url, kit.kit_id, { protocolVersion: 4 });
        const daemon = await kit.start();
        await cloud.until('the birth', ({ data }) => data?.['online'] === true);
        const asset = await cloud.until(
          'the drone',
          ({ channel, data }) => channel === `asset/${kit.drone()}` && data?.['status'] === 'online',
        );
        expect(asset.data).toMatchObject({ asset_key: 'falcon' });
        const task_id = randomUUID();
        const created_at = new Date().toISOString();
        const order = {
          task_id,
          asset_id: kit.drone(),
          command_name: 'work',
          payload: { ms: 0 },
          created_at,
        };
        await cloud.send({ kind: 'task', task_id }, order);
        await cloud.until(
          'the end',
          ({ channel, data }) => channel === `task/${task_id}` && data?.['status'] === 'completed',
        );
        expect((await kit.status()).uplink).toMatchObject({ state: 'connected', protocol: '3.1.1' });
        const said = daemon.log().map(({ msg }) => msg);
        expect(said.includes(texts.mqtt5_refused)).toBe(protocol === 'auto');
        expect(daemon.log().filter(({ level }) => level === 'warn' || level === 'error')).toEqual([]);
        await daemon.end('SIGTERM');
        await cloud.until('the farewell', ({ data }) => data?.['online'] === false);
        await cloud.leave();
      });
    } finally {
      end.abort();
      await closed;
    }
  });
});
