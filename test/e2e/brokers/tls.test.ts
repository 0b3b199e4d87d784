/** TLS as the environment of the machine sets it up: the authorities of the system, and a switch that must not work. */
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { startMosquitto } from '../../support/brokers/broker.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { startChild } from '../../support/child.ts';
import { startCloud } from '../../support/kit/cloud.ts';
import { command_file, withKit } from '../../support/kit/kit.ts';
import { peerMissing } from '../../support/peers.ts';
import { testDirectory } from '../../support/test-directory.ts';

describe.skipIf(peerMissing('mosquitto', 'openssl'))('a kit without broker.ca_file', () => {
  it('trusts the authorities of the system', async () => {
    const dir = await testDirectory();
    await withKit({ rehearsed: false }, async (kit) => {
      const { ca, server } = await makeCertificates(dir, kit.kit_id);
      const broker = await startMosquitto({ tls: { ca, pair: server } });
      await kit.configure({ broker: { url: broker.url }, drivers: [kit.gateway] });
      const cloud = await startCloud(broker.url, kit.kit_id, { ca: await readFile(ca, 'utf8') });
      // OpenSSL looks here for the file that holds the system's authorities.
      const env = { SSL_CERT_FILE: ca };
      const daemon = startChild([command_file, 'run', '--config', kit.config_file], { env });
      try {
        const birth = await cloud.until('the birth', ({ channel }) => channel === 'state');
        expect(birth.data).toMatchObject({ online: true });
      } finally {
        await daemon.end('SIGTERM');
        await cloud.leave();
        await broker.stop();
      }
    });
  });
});

describe('NODE_TLS_REJECT_UNAUTHORIZED=0', () => {
  it.each(['run', 'service'])('keeps "%s" from starting, with a sentence', async (command) => {
    await withKit({ rehearsed: false }, async (kit) => {
      await kit.configure({ kit_id: randomUUID(), broker: { url: 'mqtts://localhost:1' } });
      const env = { NODE_TLS_REJECT_UNAUTHORIZED: '0' };
      const { code, stderr } = await startChild([command_file, command, '--config', kit.config_file], { env })
        .ended;
      expect(code).toBe(78);
      expect(stderr).toMatch(
        /NODE_TLS_REJECT_UNAUTHORIZED=0 .* disables certificate verification; remove it/,
      );
    });
  });
});

describe('broker.username that is empty', () => {
  it.each([
    ['is accepted beside a client certificate', true, 0],
    ['is refused without one', false, 78],
  ])('%s', async (_, has_certificate, code) => {
    const dir = await testDirectory();
    await withKit({ rehearsed: false }, async (kit) => {
      const { client } = await makeCertificates(dir, kit.kit_id);
      const identity = has_certificate ? { cert_file: client.cert, key_file: client.key } : {};
      await kit.configure({
        broker: { url: 'mqtts://localhost:1', username: '', ...identity },
        drivers: [],
      });
      const checked = await startChild([command_file, 'check', kit.config_file]).ended;
      expect({ code: checked.code, told: /username/.test(checked.stdout + checked.stderr) }).toEqual({
        code,
        told: code !== 0,
      });
    });
  });
});
