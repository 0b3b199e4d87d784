/** A kit that is enrolled at the service logs in at a real broker with what its setup took from the file. */
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { texts } from '../../../src/cli/texts.ts';
import { runProgram } from '../../../src/cli/program.ts';
import { startMosquitto } from '../../support/brokers/broker.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { peerMissing } from '../../support/peers.ts';
import { makeDirectory } from '../../support/temporary.ts';
import { recordedShell } from './shell-of-test.ts';

const kit_id = '3f0c1f6e-52a4-4c0e-9d6b-1f2a7c9e4b10';

async function run(...words: readonly string[]) {
  const shell = recordedShell();
  const code = await runProgram([...words], shell);
  return { code, out: shell.stdout(), err: shell.stderr() };
}

test('setup names the file of service enrol that it cannot read, and the remedy', async () => {
  const dir = await makeDirectory();
  const missing = join(dir, 'seven.kit');
  const { code, err } = await run('setup', '-c', join(dir, 'config.yaml'), '--from', missing, '--no-ask');
  expect([code, err]).toEqual([1, expect.stringMatching(/^--from: \S+seven\.kit cannot be read \(.*\); /u)]);
});

test.skipIf(peerMissing('mosquitto', 'openssl')).for([
  ['a certificate', []],
  ['a password', ['--password']],
] as const)('service enrol and setup --from: %s', async ([kind, flags]) => {
  const dir = await makeDirectory();
  const kit = join(dir, 'kit');
  await mkdir(kit);
  const certificates = await makeCertificates(dir, 'unused');
  const authority = join(dir, 'authority');
  const file = join(dir, 'seven.kit');
  const enrol = async (url: string) =>
    run(
      ...`service enrol Kit7 --broker ${url} --kit-id ${kit_id} --authority ${authority} --ca ${certificates.ca} --out ${file}`.split(
        ' ',
      ),
      ...flags,
    );
  // The broker is told what the command prints.
  const first = await enrol('mqtts://localhost:1');
  expect(first.code).toBe(0);
  expect(first.out).toContain(kit_id);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect((await enrol('mqtts://localhost:1')).err).toContain(texts.enrolment_exists(file));
  const made = JSON.parse(await readFile(file, 'utf8')) as Record<string, string>;
  const password = made['password'];
  const broker = await startMosquitto({
    tls: {
      pair: certificates.server,
      ca: password === undefined ? join(authority, 'ca.crt') : certificates.ca,
      client_ca: password === undefined,
    },
    ...(password === undefined ? {} : { passwords: { [kit_id]: password } }),
  });
  try {
    // As it comes back from an editor of Windows: https://github.com/openssl/openssl/pull/10112
    const text_of_kit = JSON.stringify({ ...made, broker: broker.url }, null, 2);
    await writeFile(file, `\uFEFF${text_of_kit.replaceAll('\n', '\r\n')}`);
    const config = join(kit, 'config.yaml');
    const { code, out } = await run('setup', '-c', config, '--from', file, '--scan', '0', '--no-ask');
    expect([code, out]).toEqual([0, expect.stringMatching(/broker login +accepted|ok +broker login/u)]);
    const text = await readFile(config, 'utf8');
    expect(text).toContain('kit_name: Kit7');
    expect(text).toContain(kind === 'a password' ? 'password_file:' : 'cert_file:');
    // A file whose login is refused changes nothing of a kit that works: https://github.com/Azure/iot-identity-service/pull/392
    const files = async () =>
      Promise.all((await readdir(kit)).map(async (name) => [name, await readFile(join(kit, name), 'utf8')]));
    const kept = await files();
    const wrong = kind === 'a password' ? { password: 'wrong' } : { cert: '', key: '', password: 'wrong' };
    await writeFile(file, JSON.stringify({ ...made, broker: broker.url, ...wrong }));
    const again = ['setup', '-c', config, '--from', file, '--scan', '0', '--no-ask', '--force'];
    expect((await run(...again)).code).not.toBe(0);
    expect(await files()).toEqual(kept);
  } finally {
    await broker.stop();
  }
  expect(
    (await run('setup', '-c', join(dir, 'c.yaml'), '--from', certificates.ca, '--no-ask')).err,
  ).toContain(texts.no_enrolment(certificates.ca));
});

// A .pem of a broker often holds its key beside the chain (https://github.com/processone/ejabberd/issues/2850); what is no
// certificate, or no address, is noticed here and not at the kit.
test.skipIf(peerMissing('openssl'))('service enrol gives a kit only what it may have', async () => {
  const dir = await makeDirectory();
  const { ca, server } = await makeCertificates(dir, 'unused');
  const [file, both] = [join(dir, 'a.kit'), join(dir, 'both.pem')];
  await writeFile(both, `\uFEFF${await readFile(server.key, 'utf8')}${await readFile(ca, 'utf8')}`);
  const enrol = async (...words: readonly string[]) =>
    run('service', 'enrol', 'A', '--authority', join(dir, 'authority'), '--out', file, ...words);
  const broker = ['--broker', 'mqtts://localhost:1'];
  expect((await enrol(...broker, '--ca', server.key)).err).toContain('holds no PEM certificate');
  expect((await enrol(...broker, '--kit-id', 'seven')).err).toContain(texts.kit_id_no_uuid);
  expect((await enrol('--broker', 'localhost:8883')).err).toContain('which is not an address');
  expect((await enrol(...broker, '--ca', both)).code).toBe(0);
  const made = JSON.parse(await readFile(file, 'utf8')) as Record<string, string>;
  expect(made['ca']).toMatch(/^-----BEGIN CERTIFICATE-----\n[^-]+-----END CERTIFICATE-----\n$/u);
});
