/** Where figures are answered: on the loopback for anyone, elsewhere for those with a token or a certificate. */
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readStandalone } from '../../../../src/kit/config/standalone.ts';
import { texts } from '../../../../src/kit/config/texts.ts';
import { makeCertificates } from '../../../support/certificates.ts';
import { makeDirectory } from '../../../support/temporary.ts';
import { faultsOf, kit_id, readText } from './lab.ts';

const token = '9c41f0d7be2a6583'.repeat(4);
let dir: string;
beforeAll(async () => {
  dir = await makeDirectory();
  await makeCertificates(dir, 'prometheus');
});
afterAll(async () => rm(dir, { recursive: true, force: true }));

describe.each([
  [
    'the kit',
    async (section: string) =>
      readText(dir, `kit_id: ${kit_id}\nbroker: { url: none }\nmetrics: ${section}\n`),
  ],
  [
    'the service',
    async (section: string) => {
      const file = join(dir, 'service.yaml');
      await writeFile(file, `broker: { url: 'mqtt://127.0.0.1:1883' }\nmetrics: ${section}\n`);
      return readStandalone(file, undefined);
    },
  ],
])('metrics of %s', (_, read) => {
  const reading = async (section: string, token_text = `${token}\n`): Promise<unknown> => {
    await writeFile(join(dir, 'token'), token_text, { mode: 0o640 });
    const result = read(section);
    const faults = await faultsOf(dir, result);
    return faults.length > 0 ? faults.join('\n').replace(/^\S+ /u, '') : (await result).metrics;
  };
  const tls = 'tls: { cert_file: server.crt, key_file: server.key, client_ca_file: ca.crt }';

  it.each([
    ['{ listen: 127.0.0.1:9464 }', { host: '127.0.0.1', port: 9464 }, undefined],
    ["{ listen: '[::1]:9464' }", { host: '::1', port: 9464 }, undefined],
    ['{ listen: 0.0.0.0:9464, token_file: token }', { host: '0.0.0.0', port: 9464 }, token],
    ["{ listen: '[::]:9464', token_file: token }", { host: '::', port: 9464 }, token],
    [`{ listen: 10.1.2.3:9464, ${tls} }`, { host: '10.1.2.3', port: 9464 }, undefined],
  ])('%s is taken', async (section, listen, wanted) => {
    expect(await reading(section)).toMatchObject({ listen, token: wanted });
  });

  it.each(['\n', '\r\n', ' \n\n'])(
    'a token ends before the blanks %j that editors and echo add',
    async (end) => {
      const section = '{ listen: 0.0.0.0:9464, token_file: token }';
      expect(await reading(section, `${token}${end}`)).toMatchObject({ token });
    },
  );

  it.each([
    ['{ listen: 0.0.0.0:9464 }', `metrics.listen: ${texts.metrics_open('0.0.0.0')}`],
    ["{ listen: '[fd00::1]:9464' }", `metrics.listen: ${texts.metrics_open('fd00::1')}`],
    [
      '{ listen: 0.0.0.0:9464, tls: { cert_file: server.crt, key_file: server.key } }',
      `metrics.listen: ${texts.metrics_open('0.0.0.0')}`,
    ],
    [
      `{ listen: 0.0.0.0:9464, ${tls.replace(' }', ', client_certificates: optional }')} }`,
      `metrics.listen: ${texts.metrics_open('0.0.0.0')}`,
    ],
  ])('%s is refused: anyone in the network could read the figures', async (section, fault) => {
    expect(await reading(section)).toBe(fault);
  });

  it.each(['short', 'a'.repeat(64), 'two words that are long enough'])(
    'a token "%s" is refused',
    async (weak) => {
      const section = '{ listen: 127.0.0.1:9464, token_file: token }';
      expect(await reading(section, weak)).toBe(`metrics.token_file: ${texts.weak_token('token')}`);
    },
  );
});
