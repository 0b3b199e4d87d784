/**
 * Credentials that others renew on disk: certificates (thin-edge/thin-edge.io#3157, eclipse/mosquitto#524), tokens in place of
 * passwords (mqttjs/MQTT.js#916, eclipse/paho.mqtt.java#869).
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Credentials } from '../../../../src/kit/uplink/credentials.ts';
import { texts } from '../../../../src/kit/uplink/texts.ts';
import { expiryOf } from '../../../../src/mqtt/credentials.ts';
import { brokerOptions } from '../../../support/brokers/broker-options.ts';
import { startMosquitto } from '../../../support/brokers/broker.ts';
import { makeCertificates, makeChain } from '../../../support/certificates.ts';
import { eventually } from '../../../support/eventually.ts';
import { startConnector } from '../../../support/kit/connector.ts';
import { peerMissing } from '../../../support/peers.ts';
import { withDirectory } from '../../../support/temporary.ts';

const now_ms = Date.UTC(2026, 10, 29);
const day_ms = 86_400_000;
const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const tokenUntil = (at_ms: number): string =>
  `${part({ alg: 'RS256' })}.${part({ exp: at_ms / 1_000 })}.c2ln`;

const configured = brokerOptions('mqtts://b');

function lab(password: string) {
  const world = { password, now_ms };
  const problems = new Map<string, string>();
  const credentials = new Credentials(
    async () => brokerOptions('mqtts://b', { password: world.password }),
    {
      note: (kind, { sentence }) => void problems.set(kind, sentence),
      clear: (...kinds) => kinds.forEach((kind) => problems.delete(kind)),
    },
    () => world.now_ms,
  );
  return { world, credentials, sentences: () => [...problems.values()] };
}

describe('credentials', () => {
  it('end with a token, of either kind, and a plain password does not end', () => {
    const ofPassword = (password: string) => expiryOf({ cert: undefined, password });
    expect(ofPassword(tokenUntil(now_ms))).toEqual({ what: 'token', at_ms: now_ms });
    const signature = `SharedAccessSignature sr=hub.example%2fdevices%2fkit&sig=a%3D&se=${now_ms / 1_000}`;
    expect(ofPassword(signature)).toEqual({ what: 'token', at_ms: now_ms });
    for (const plain of ['secret', 'a.b.c', `${part({})}.${part({ exp: 'soon' })}.c2ln`])
      expect(ofPassword(plain)).toBeUndefined();
  });

  it('are replaced shortly before they end, once there are others that last longer', async () => {
    const { world, credentials, sentences } = lab(tokenUntil(now_ms + 3_600_000));
    await credentials.read(configured);
    expect(await credentials.isRenewalDue()).toBe(false);
    world.now_ms += 3_500_000;
    expect(await credentials.isRenewalDue()).toBe(false);
    expect(sentences()).toEqual([]);
    world.password = tokenUntil(now_ms + 7_200_000);
    expect(await credentials.isRenewalDue()).toBe(true);
    await credentials.read(configured);
    expect(await credentials.isRenewalDue()).toBe(false);
  });

  it('are named once a token has ended without another', async () => {
    const { world, credentials, sentences } = lab(tokenUntil(now_ms));
    world.now_ms += 1;
    await credentials.read(configured);
    expect(sentences()).toEqual([texts.has_expired('token', '2026-11-29')]);
    world.password = tokenUntil(now_ms + 3_600_000);
    expect(await credentials.isRenewalDue()).toBe(true);
    expect(sentences()).toEqual([]);
  });

  it.skipIf(peerMissing('openssl'))('are named 14 days before a certificate ends', async () => {
    await withDirectory(async (dir) => {
      const { client } = await makeCertificates(dir, 'kit');
      const cert = await readFile(client.cert, 'utf8');
      const end_ms = expiryOf({ cert, password: undefined })?.at_ms ?? 0;
      const sentences: string[] = [];
      for (const left_days of [15, 13]) {
        const problems = {
          note: (_kind: string, { sentence }: { readonly sentence: string }) => void sentences.push(sentence),
          clear: () => undefined,
        };
        const broker = brokerOptions('mqtts://b', { cert });
        await new Credentials(
          async () => broker,
          problems,
          () => end_ms - left_days * day_ms,
        ).read(broker);
      }
      const day = new Date(end_ms).toISOString().slice(0, 10);
      expect(sentences).toEqual([texts.expires('client certificate', day)]);
    });
  });
});

describe.skipIf(peerMissing('openssl'))('a file of authorities', () => {
  it('is named 14 days before the last of them ends, until there is another', async () => {
    await withDirectory(async (dir) => {
      const made = await makeChain(dir, { root: 2, intermediate: 90, server: 2 });
      const [soon, later] = await Promise.all(
        [made.root, made.intermediate].map(async (file) => readFile(file, 'utf8')),
      );
      const world = { ca: soon };
      const sentences = new Map<string, string>();
      const credentials = new Credentials(async () => brokerOptions('mqtts://b', { ca: world.ca }), {
        note: (kind, { sentence }) => void sentences.set(kind, sentence),
        clear: (...kinds) => kinds.forEach((kind) => sentences.delete(kind)),
      });
      await credentials.read(configured);
      expect([...sentences.values()]).toEqual([expect.stringMatching(/CA file of the broker ends on 20/u)]);
      world.ca = `${soon}${later}`;
      expect(await credentials.isRenewalDue()).toBe(false);
      expect([...sentences.values()]).toEqual([]);
    });
  });
});

describe.skipIf(peerMissing('mosquitto', 'mosquitto_passwd'))('a kit whose password was replaced', () => {
  it('uses the new one at its next attempt', async () => {
    await withDirectory(async (dir) => {
      const broker = await startMosquitto({ passwords: { kit: 'first' } });
      onTestFinished(async () => broker.stop());
      let password = 'first';
      const url = broker.url;
      const file = join(dir, 'buffer.db');
      const renew = async () => ({ password });
      const kit = await startConnector({ file, url, username: 'kit', password, renew });
      onTestFinished(async () => kit.stop());
      await eventually('connected', () => kit.uplink.online);
      await broker.kill();
      await broker.setPasswords({ kit: 'second' });
      await broker.start();
      await broker.logged(/not authori[sz]ed/u);
      password = 'second';
      await eventually('connected again', () => kit.uplink.online);
    });
  });
});
