/** The certificates of the service: named in both configurations, and what is wrong with them said before the start. */
import { chmod, copyFile, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readStandalone } from '../../../../src/kit/config/standalone.ts';
import { type Certificates, makeCertificates } from '../../../support/certificates.ts';
import { makeDirectory } from '../../../support/temporary.ts';
import { faultsOf, kit_id, readText } from './lab.ts';

let dir: string;
let ours: Certificates;
beforeAll(async () => {
  dir = await makeDirectory();
  await mkdir(join(dir, 'made'));
  ours = await makeCertificates(join(dir, 'made'), 'machine 7');
  await copyFile(ours.server.cert, join(dir, 'cert'));
  await copyFile(ours.server.key, join(dir, 'key'));
  await copyFile(ours.ca, join(dir, 'ca'));
  await copyFile(ours.client.key, join(dir, 'other-key'));
  await copyFile(ours.server.key, join(dir, 'open-key'));
  await chmod(join(dir, 'open-key'), 0o644);
  await writeFile(join(dir, 'text'), 'no certificate');
});
afterAll(async () => rm(dir, { recursive: true, force: true }));

const embedded = async (tls: string, more = '') =>
  readText(dir, `kit_id: ${kit_id}\nservice:\n  tls: ${tls}\n${more}`);

async function standalone(tls: string) {
  const file = join(dir, 'service.yaml');
  await writeFile(file, `broker: { url: 'mqtt://127.0.0.1:1883' }\ntls: ${tls}\n`);
  return readStandalone(file, undefined);
}

it.each([
  ['{ cert_file: cert, key_file: key }', undefined, undefined],
  ['{ cert_file: cert, key_file: key, client_ca_file: ca }', 'ca', 'required'],
  ['{ cert_file: cert, key_file: key, client_ca_file: ca, client_certificates: optional }', 'ca', 'optional'],
])(
  'reads %s beside the daemon and alone, names of files from the configuration on',
  async (tls, ca, asked) => {
    const expected = {
      cert_file: join(dir, 'cert'),
      key_file: join(dir, 'key'),
      client_ca_file: ca && join(dir, ca),
      client_certificates: asked,
    };
    expect((await embedded(tls)).service?.tls).toEqual(expected);
    expect((await standalone(tls)).tls).toEqual(expected);
  },
);

it.each([
  ['{ cert_file: cert }', 'tls.key_file', 'is missing'],
  [
    '{ cert_file: cert, key_file: nowhere }',
    'tls.key_file',
    'nowhere cannot be read (no such file or directory)',
  ],
  ['{ cert_file: text, key_file: key }', 'tls.cert_file', 'holds no PEM certificate'],
  ['{ cert_file: cert, key_file: text }', 'tls.key_file', 'every user of this machine has access'],
  ['{ cert_file: cert, key_file: open-key }', 'tls.key_file', 'run "chmod o= '],
  ['{ cert_file: cert, key_file: other-key }', 'tls.key_file', 'is not the key of the certificate'],
  ['{ cert_file: cert, key_file: key, client_ca_file: text }', 'tls.client_ca_file', 'no PEM certificate'],
  [
    '{ cert_file: cert, key_file: key, client_certificates: required }',
    'tls.client_certificates',
    'set client_ca_file',
  ],
])('names the fault of %s', async (tls, key, remedy) => {
  for (const read of [embedded, standalone]) {
    const faults = await faultsOf(dir, read(tls));
    expect(faults).toHaveLength(1);
    expect(faults[0]).toContain(key);
    expect(faults[0]).toContain(remedy);
  }
});

it('warns of a certificate that ends soon, and of video that browsers would not play on a page over TLS', async () => {
  const { warnings } = await embedded(
    '{ cert_file: cert, key_file: key }',
    "  media_origins: ['http://192.0.2.1:8889', 'https://192.0.2.2:8889']\n",
  );
  expect(warnings).toContainEqual(expect.stringMatching(/^the certificate in .*cert expires on/u));
  expect(warnings).toContainEqual(
    expect.stringContaining('block video from http://192.0.2.1:8889 on a page that was loaded over TLS'),
  );
});
