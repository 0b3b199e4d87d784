/** What the doctor finds for the service of the package: files its user may not read, ports that others hold, and where its secrets lie. */
import { chmod, mkdir, stat, symlink, writeFile } from 'node:fs/promises';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { checkReadable, checkWritable } from '../../../../src/cli/check.ts';
import { checkListeners } from '../../../../src/cli/doctor/listeners.ts';
import { checkSecretFiles } from '../../../../src/cli/doctor/permissions.ts';
import { placesOf } from '../../../../src/cli/doctor/places.ts';
import { checkSerialPorts } from '../../../../src/cli/doctor/examine.ts';
import { lackOfRights, obstacle, serviceUser } from '../../../../src/cli/doctor/service-user.ts';
import { credentialStore } from '../../../../src/cli/doctor/stored-secrets.ts';
import { texts } from '../../../../src/cli/doctor/texts.ts';
import { checkWear } from '../../../../src/cli/doctor/disk.ts';
import { state_dir_default } from '../../../../src/kit/config/schema.ts';
import { makeDirectory } from '../../../support/temporary.ts';

/** Somebody who owns nothing here. */
const nobody = { name: 'kit-connector', uid: 64_001, gids: new Set([64_001]) };
const holding = (text: string): unknown => expect.stringContaining(text);

test('the user of the service is looked up with all of its groups, by root alone', async () => {
  const dir = await makeDirectory();
  await writeFile(join(dir, 'passwd'), 'root:x:0:0::/root:/bin/sh\nkit-connector:x:996:995::/:/bin/false\n');
  await writeFile(join(dir, 'group'), 'dialout:x:20:tech,kit-connector\nvideo:x:44:tech\n');
  expect(await serviceUser(dir, 0)).toEqual({ name: 'kit-connector', uid: 996, gids: new Set([995, 20]) });
  expect(await serviceUser(dir, 1_000)).toBeUndefined();
  expect(await serviceUser(join(dir, 'none'), 0)).toBeUndefined();
});

test('access to a file is judged by its folders, owner, groups and other users', async () => {
  const dir = await makeDirectory();
  const folder = join(dir, 'secrets');
  const file = join(folder, 'gate');
  await mkdir(folder);
  await writeFile(file, 'secret');
  await chmod(dir, 0o711);
  const owner = { ...nobody, uid: process.getuid?.() ?? -1 };
  const member = { ...nobody, gids: new Set([process.getgid?.() ?? -1]) };
  const remedies = async (write: boolean) =>
    Promise.all(
      [owner, member, nobody].map(async (user) => (await lackOfRights(file, user, { write }))?.remedy),
    );
  await chmod(folder, 0o750);
  await chmod(file, 0o640);
  const enter = texts.move_or_open_folder('kit-connector', folder);
  expect(await remedies(false)).toEqual([undefined, undefined, enter]);
  await chmod(folder, 0o755);
  expect(await remedies(false)).toEqual([undefined, undefined, texts.run_chgrp('kit-connector', file)]);
  expect(await remedies(true)).toEqual([undefined, holding('dialout'), holding('dialout')]);
  expect(await lackOfRights(join(dir, 'none'), nobody, { write: false })).toBeUndefined();
});

test('check tests whether the user of the service can write its state, not the user who runs it', async () => {
  const dir = await makeDirectory();
  const state_dir = join(dir, 'state');
  await mkdir(state_dir);
  await chmod(state_dir, 0o750);
  await chmod(dir, 0o755);
  const owner = { ...nobody, uid: process.getuid?.() ?? -1 };
  await checkWritable({ state_dir }, 'config.yaml', owner);
  await checkWritable({ state_dir: join(state_dir, 'not/yet') }, 'config.yaml', owner);
  await checkWritable({ state_dir: state_dir_default }, 'config.yaml', nobody);
  await expect(checkWritable({ state_dir }, 'config.yaml', nobody)).rejects.toMatchObject({
    faults: [holding(`user kit-connector cannot write ${state_dir} (permission denied); run "chown`)],
  });
});

// Root copies a configuration under umask 077, and its check said that all was well while the service stayed off.
// https://github.com/nodesource/distributions/issues/1795, https://github.com/smallstep/certificates/issues/122
test('check tests whether the user of the service can read the configuration and what it names', async () => {
  await checkReadable('/etc/passwd', [{ path: '/etc/group' }], nobody);
  await checkReadable('/etc/shadow', [], undefined);
  await expect(checkReadable('/etc/shadow', [{ path: '/home/pi/kit.crt' }], nobody)).rejects.toMatchObject({
    faults: [
      holding(texts.run_chgrp('kit-connector', '/etc/shadow')),
      holding(texts.hidden_by_sandbox('/home/pi/kit.crt')),
    ],
  });
});

test('a path hidden by the sandbox of the service is reported before its permissions', async () => {
  for (const path of ['/root/ca.pem', '/home/tech/ca.pem', '/tmp/ca.pem']) {
    expect(await obstacle(path, nobody, { write: false })).toMatchObject({
      finding: texts.hidden_by_sandbox(path),
    });
  }
  expect(await obstacle('/rooted', nobody, { write: false })).toBeUndefined();
});

test('a serial port is judged for the user of the service, where root asks', async () => {
  const dir = await makeDirectory();
  const path = join(dir, 'ttyACM0');
  await writeFile(path, '');
  const ports = [{ driver: 'drones', path }];
  expect(await checkSerialPorts(ports, { proc: dir })).toMatchObject([{ level: 'ok' }]);
  expect(await checkSerialPorts(ports, { user: nobody, proc: dir })).toMatchObject([
    { level: 'fail', what: texts.serial_port('drones'), finding: holding('the service cannot access') },
  ]);
});

test('a secret that the service cannot read is reported with the command that corrects it', async () => {
  const dir = await makeDirectory();
  const path = join(dir, 'gate');
  await writeFile(path, 'secret', { mode: 0o600 });
  expect(await checkSecretFiles([{ driver: 'cameras', path }], nobody)).toMatchObject([
    { level: 'fail', what: 'secret of cameras', remedy: holding('/etc/kit-connector/secrets') },
  ]);
  await chmod(path, 0o644);
  // A certificate is for everybody.
  expect(await checkSecretFiles([{ driver: 'the broker', path, isPublic: true }])).toEqual([]);
  expect(await checkSecretFiles([{ driver: 'the broker', path }])).toMatchObject([{ level: 'fail' }]);
});

test('a port is fine while the daemon listens on it, and reported when another program or none does', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no port');
  const { port } = address;
  const look = async (runs: boolean, proc?: string) =>
    checkListeners([{ what: 'metrics', protocol: 'tcp', host: '127.0.0.1', port }], { runs }, proc);
  const place = `TCP port ${port} of 127.0.0.1`;
  try {
    const [held] = await look(true);
    expect(held).toMatchObject({ level: 'fail', what: 'port of metrics' });
    expect(held?.finding).toMatch(
      new RegExp(texts.port_used(`^${place}`, `.* \\(process ${process.pid}\\)$`), 'u'),
    );
  } finally {
    server.close();
  }
  const proc = await makeDirectory();
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const row = (local: string, state: string): string =>
    `   0: ${local}:${hex} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000 996 0 4711 1\n`;
  await mkdir(join(proc, 'net'));
  const table = async (...rows: readonly string[]) =>
    writeFile(join(proc, 'net', 'tcp'), `head\n${rows.join('')}`);
  await table(row('0100007F', '01'), row('0200007F', '0A'));
  expect(await look(true, proc)).toMatchObject([{ level: 'warn', finding: texts.nothing_listens(place) }]);
  expect(await look(false, proc)).toEqual([]);
  for (const local of ['0100007F', '00000000']) {
    await table(row(local, '0A'));
    // Whose it is, only root sees.
    expect(await look(true, proc)).toMatchObject([{ level: 'ok' }]);
    expect(await look(false, proc)).toMatchObject([
      { level: 'fail', finding: texts.port_used(place, 'another program') },
    ]);
  }
});

test.each([
  ['0x02 0x01', '0x01', 'ok', 'up to 20 % of its rated life'],
  ['0x09 0x01', '0x01', 'warn', 'up to 90 % of its rated life'],
  ['0x03 0x01', '0x02', 'warn', 'few spare blocks are left'],
  ['0x03 0x01', '0x03', 'fail', 'few spare blocks are left'],
  ['0x01 0x0b', '0x01', 'fail', 'has exceeded its rated life'],
])('flash that tells of its wear is judged by it: %s, %s', async (life, eol, level, words) => {
  const dir = await makeDirectory();
  const { dev } = await stat(dir);
  const [major, minor] = [(dev >> 8) & 0xfff, (dev & 0xff) | ((dev >> 12) & 0xfff00)];
  const disk = join(dir, 'sys/devices/mmcblk0');
  await mkdir(join(disk, 'mmcblk0p2'), { recursive: true });
  await mkdir(join(disk, 'device'));
  await mkdir(join(dir, 'sys/dev/block'), { recursive: true });
  await symlink(join(disk, 'mmcblk0p2'), join(dir, `sys/dev/block/${major}:${minor}`));
  expect(await checkWear(dir, join(dir, 'sys'))).toEqual([]);
  await writeFile(join(disk, 'device/life_time'), `${life}\n`);
  await writeFile(join(disk, 'device/pre_eol_info'), `${eol}\n`);
  expect(await checkWear(dir, join(dir, 'sys'))).toMatchObject([
    { level, what: 'disk wear', finding: holding(words) },
  ]);
});

test('a remedy names the file that holds the secret on this machine', async () => {
  const named = { broker: { url: 'mqtts://b', password_file: '/secrets/pw', ca_file: '/secrets/ca.pem' } };
  expect(placesOf(named, 'none')).toEqual({ password: '/secrets/pw', ca: '/secrets/ca.pem', isBlind: false });
  expect(placesOf({}, 'none').password).toBe('broker.password_file');
  expect(placesOf({ broker: { url: 'mqtts://b' } }, 'closed')).toEqual({
    password: '/etc/credstore/kit-connector.mqtt-password',
    ca: texts.ca_place('/etc/credstore/kit-connector.mqtt-ca'),
    isBlind: true,
  });
  const dir = await makeDirectory();
  expect(await credentialStore(join(dir, 'none'))).toBe('none');
  expect(await credentialStore(dir)).toBe('readable');
});
