/** What a good configuration becomes, and how the secrets beside it are read. */
import { execFileSync } from 'node:child_process';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readControlSocket } from '../../../../src/kit/config/config.ts';
import { makeCertificates, makeChain } from '../../../support/certificates.ts';
import { peerMissing } from '../../../support/peers.ts';
import { testDirectory } from '../../../support/test-directory.ts';
import { faultsOf, kit_id, readText } from './lab.ts';

const id = `kit_id: ${kit_id}\n`;

test('state_dir is absolute, as the daemon outlives its working directory', async () => {
  const dir = await testDirectory();
  const { state_dir } = await readText(dir, `kit_id: ${kit_id}\nstate_dir: kit/state\n`);
  expect(state_dir).toBe(join(process.cwd(), 'kit/state'));
});

test('a file with only a kit_id is a valid configuration without a broker', async () => {
  const dir = await testDirectory();
  const config = await readText(dir, `kit_id: ${kit_id.toUpperCase()}\n`);
  expect(config).toMatchObject({
    kit_id,
    control_socket: '/run/kit-connector/control.sock',
    broker: undefined,
    outbox: { bytes_max: 512e6, free_bytes_min: 64e6, age_max_ms: 30 * 86_400_000 },
    feeds: { rates_hz: { gps: 2, attitude: 2 }, rate_default_hz: 5 },
    drivers: [],
  });
});

test('units become those of the code and every type of link gets its cap', async () => {
  const dir = await testDirectory();
  const config = await readText(
    dir,
    `${id}uplink: { backlog_kbps: { default: 800, satellite: 8 } }\ntelemetry: { floor_s: 30 }\n`,
  );
  expect(config.uplink.backlog_bytes_per_s).toEqual({
    default: 100_000,
    satellite: 1_000,
    cellular: 100_000,
    ethernet: 100_000,
    wifi: 100_000,
  });
  expect(config.telemetry.floor_ms).toBe(30_000);
});

test('a configuration cannot be changed after it was read', async () => {
  const dir = await testDirectory();
  const config = await readText(dir, `${id}drivers:\n  - driver: probe\n`);
  expect(Object.isFrozen(config) && Object.isFrozen(config.outbox) && Object.isFrozen(config.drivers)).toBe(
    true,
  );
  expect(Object.isFrozen(config.uplink.backlog_bytes_per_s)).toBe(true);
});

test('only the drivers that are named are loaded', async () => {
  const dir = await testDirectory();
  const config = await readText(dir, `${id}drivers:\n  - { driver: probe, name: left }\n  - driver: probe\n`);
  expect(config.drivers.map(({ name }) => name)).toEqual(['left', 'probe']);
});

test('faults of several sections come together, in the order of the lines', async () => {
  const dir = await testDirectory();
  const text = `kit_id: 7\nkit: 7\nbroker:\n  url: ftp://b\ndrivers:\n  - driver: probe\n    options: { port: 0 }\n`;
  const faults = await faultsOf(dir, readText(dir, text));
  expect(faults.map((fault) => fault.split(': ')[0])).toEqual([
    'config.yaml:1:1 kit_id',
    'config.yaml:2:1 kit',
    'config.yaml:4:3 broker.url',
    'config.yaml:7:16 drivers[0].options.port',
  ]);
});

test('a key with a fault does not hide the other faults of its section', async () => {
  const dir = await testDirectory();
  const lines = [
    'broker:',
    '  url: mqtts://b',
    '  keepalive_s: often',
    '  reconnect: true',
    '  ca_file: nowhere.pem',
    'service:',
    '  listen: 127.0.0.1:8080',
    '  colour: green',
    '  tls: { cert_file: nowhere, key_file: nowhere }',
    '',
  ];
  const faults = await faultsOf(dir, readText(dir, id + lines.join('\n')));
  const keys = faults.map((fault) => fault.split(' ')[1]);
  expect(keys).toEqual([
    'broker.keepalive_s:',
    'broker.reconnect:',
    'broker.ca_file:',
    'service.colour:',
    'service.tls.cert_file:',
    'service.tls.key_file:',
  ]);
});

test('the control socket is found in a file that has faults elsewhere', async () => {
  const dir = await testDirectory();
  await writeFile(join(dir, 'config.yaml'), 'runtime_dir: /tmp/kit\nnonsense: 1\n');
  expect(await readControlSocket(join(dir, 'config.yaml'))).toBe('/tmp/kit/control.sock');
});

test('a password comes from the file beside the configuration, without its line end, and before the credential', async () => {
  const dir = await testDirectory();
  await writeFile(join(dir, 'password'), 'of the file \n', { mode: 0o600 });
  await mkdir(join(dir, 'credentials'));
  await writeFile(join(dir, 'credentials', 'mqtt-password'), 'of systemd', { mode: 0o400 });
  const named = `${id}broker:\n  url: mqtts://b\n  password_file: password\n`;
  const unnamed = `${id}broker:\n  url: mqtts://b\n`;
  const credentials = join(dir, 'credentials');
  expect((await readText(dir, named, credentials)).broker?.password).toBe('of the file ');
  expect((await readText(dir, unnamed, credentials)).broker).toMatchObject({
    url: 'mqtts://b:8883',
    username: kit_id,
    password: 'of systemd',
  });
});

test('a password that crosses the network unencrypted is warned of, on loopback it is not', async () => {
  const dir = await testDirectory();
  await writeFile(join(dir, 'password'), 'x', { mode: 0o600 });
  const config = (host: string) => `${id}broker:\n  url: mqtt://${host}\n  password_file: password\n`;
  expect((await readText(dir, config('broker.example.com'))).warnings).toEqual([
    'the password crosses the network unencrypted to broker.example.com; write mqtts:// in broker.url',
  ]);
  expect((await readText(dir, config('127.0.0.1'))).warnings).toEqual([]);
});

const broker = (lines: string) => `${id}broker:\n  url: mqtts://b\n${lines}`;

test.each([
  ['read by everybody', 'x', 0o644, 'every user of this machine has access to secret; run "chmod o= secret"'],
  ['empty', '\n', 0o600, 'secret is empty; write the secret into it'],
  [
    'larger than any secret',
    'x'.repeat(100_001),
    0o600,
    'secret is larger than 100000 bytes; name the right file',
  ],
])('a password file that is %s is refused', async (_, content, mode, sentence) => {
  const dir = await testDirectory();
  await writeFile(join(dir, 'secret'), content);
  await chmod(join(dir, 'secret'), mode);
  const faults = await faultsOf(dir, readText(dir, broker('  password_file: secret\n')));
  expect(faults).toEqual([`config.yaml:4:3 broker.password_file: ${sentence}`]);
});

test('a named pipe instead of a password file is refused without waiting for its writer', async () => {
  const dir = await testDirectory();
  execFileSync('/usr/bin/mkfifo', ['-m', '600', join(dir, 'secret')]);
  const faults = await faultsOf(dir, readText(dir, broker('  password_file: secret\n')));
  expect(faults).toEqual([
    'config.yaml:4:3 broker.password_file: secret is not a regular file; name the right file',
  ]);
});

test.each([
  [
    'a certificate file without a certificate',
    '  cert_file: no.pem\n  key_file: no.pem\n',
    [
      'config.yaml:4:3 broker.cert_file: no.pem holds no PEM certificate; it must begin with -----BEGIN CERTIFICATE-----',
      'config.yaml:5:3 broker.key_file: no.pem holds no PEM private key; it must begin with -----BEGIN PRIVATE KEY-----',
    ],
  ],
  [
    'a damaged certificate',
    '  ca_file: damaged.pem\n',
    [
      expect.stringMatching(
        /broker\.ca_file: damaged\.pem holds a damaged certificate \(.*\); install it again$/,
      ),
    ],
  ],
  [
    'a key that asks for a passphrase',
    '  key_file: locked.pem\n',
    [
      'config.yaml:4:3 broker.key_file: has no effect alone; set broker.cert_file too',
      'config.yaml:4:3 broker.key_file: the key in locked.pem is protected by a passphrase; remove the passphrase',
    ],
  ],
])('%s is refused', async (_, lines, expected) => {
  const dir = await testDirectory();
  await writeFile(join(dir, 'no.pem'), 'nothing', { mode: 0o600 });
  await writeFile(join(dir, 'damaged.pem'), '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n');
  await writeFile(join(dir, 'locked.pem'), '-----BEGIN ENCRYPTED PRIVATE KEY-----\n', { mode: 0o600 });
  const faults = await faultsOf(dir, readText(dir, broker(lines)));
  expect([...faults].sort()).toEqual(expected);
});

test.skipIf(peerMissing('openssl'))(
  'an empty user name beside a client certificate sends none, and a missing one is the id of the kit',
  async () => {
    const dir = await testDirectory();
    const { ca, client } = await makeCertificates(dir, kit_id);
    const pair = `  ca_file: ${ca}\n  cert_file: ${client.cert}\n  key_file: ${client.key}\n`;
    const alone = await readText(dir, broker(`${pair}  username: ''\n`));
    expect(alone.broker?.username).toBeUndefined();
    expect((await readText(dir, broker(pair))).broker?.username).toBe(kit_id);
  },
);

test.skipIf(peerMissing('openssl'))(
  'the authorities of a system may be named as ca_file, though some of them have expired',
  async () => {
    const dir = await testDirectory();
    const { root, server } = await makeChain(dir, { root: -1, intermediate: 2, server: 2 });
    const some = (await readFile(root, 'utf8')) + (await readFile(server.cert, 'utf8'));
    // Debian has 140 of them in 220 kB, Fedora more.
    await writeFile(join(dir, 'ca-certificates.crt'), some.repeat(200));
    const { broker: read, warnings } = await readText(dir, broker('  ca_file: ca-certificates.crt\n'));
    expect([read?.ca?.length, warnings]).toEqual([200 * some.length, []]);
  },
);

test.skipIf(peerMissing('openssl'))(
  'a key must belong to its certificate, and what the clock says is only a warning',
  async () => {
    const dir = await testDirectory();
    const { ca, server, client, expired } = await makeCertificates(dir, kit_id);
    const pair = (cert: string, key: string) =>
      broker(`  ca_file: ${ca}\n  cert_file: ${cert}\n  key_file: ${key}\n`);
    expect(await faultsOf(dir, readText(dir, pair(client.cert, server.key)))).toEqual([
      'config.yaml:6:3 broker.key_file: server.key is not the key of the certificate; install the two that were issued together',
    ]);
    const config = await readText(dir, pair(expired.cert, expired.key));
    expect(config.broker?.cert).toContain('BEGIN CERTIFICATE');
    expect(config.warnings.join('\n')).toMatch(/expired\.crt expired on \d{4}-\d\d-\d\d; install a new one/);
  },
);
