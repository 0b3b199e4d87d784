/** Secrets that are read again while the kit runs. */
import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { restartKeys } from '../../../../src/kit/app/reload.ts';
import { renewed } from '../../../../src/kit/config/broker.ts';
import { makeCertificates } from '../../../support/certificates.ts';
import { peerMissing } from '../../../support/peers.ts';
import { testDirectory } from '../../../support/test-directory.ts';
import { kit_id, readText } from './lab.ts';

it('a password and the login at a proxy are those of their files', async () => {
  const dir = await testDirectory();
  const write = async (name: string, text: string) => writeFile(join(dir, name), text, { mode: 0o600 });
  await write('pw', 'first\n');
  await write('proxy-pw', 'p1\n');
  const proxy = 'proxy: "http://p:3128", proxy_username: kit, proxy_password_file: proxy-pw';
  const text = `kit_id: ${kit_id}\nbroker: { url: mqtts://b, password_file: pw, ${proxy} }\n`;
  const before = await readText(dir, text);
  if (!before.broker) throw new Error('no broker');
  expect(await renewed(before.broker)).toEqual(before.broker);
  await write('pw', 'second\r\n');
  await write('proxy-pw', 'p2');
  const after = await renewed(before.broker);
  expect(after).toMatchObject({ password: 'second', proxy: { host: 'p', password: 'p2' } });
  expect(restartKeys(before, await readText(dir, text))).toEqual([]);
  const other = text.replace('mqtts://b', 'mqtts://c');
  expect(restartKeys(before, await readText(dir, other))).toEqual(['broker']);
  await write('pw', '');
  expect(await renewed(after)).toEqual(after);
});

it.skipIf(peerMissing('openssl'))(
  'a certificate is taken with its key, not while one of the two is replaced',
  async () => {
    const dir = await testDirectory();
    const { client, clientOf } = await makeCertificates(dir, 'kit');
    const next = await clientOf('kit-renewed');
    for (const end of ['cert', 'key'] as const) await copyFile(client[end], join(dir, `now.${end}`));
    const files = 'cert_file: now.cert, key_file: now.key';
    const config = await readText(dir, `kit_id: ${kit_id}\nbroker: { url: mqtts://b, ${files} }\n`);
    if (!config.broker) throw new Error('no broker');
    await copyFile(next.cert, join(dir, 'now.cert'));
    expect(await renewed(config.broker)).toBe(config.broker);
    await copyFile(next.key, join(dir, 'now.key'));
    const after = await renewed(config.broker);
    expect(after.cert).not.toBe(config.broker.cert);
    expect(after.key).not.toBe(config.broker.key);
  },
);
