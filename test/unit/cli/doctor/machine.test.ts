/** What the doctor finds on the machine itself: clock, disk, serial ports, files, and what the options name. */
import { spawn } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { drivers } from '../../../../drivers/index.ts';
import { checkClock, clockOffset, splitServer } from '../../../../src/cli/doctor/clock.ts';
import { checkDisk } from '../../../../src/cli/doctor/disk.ts';
import { checkJournal, checkSerialPorts } from '../../../../src/cli/doctor/examine.ts';
import { checkConfigFile, checkSecretFiles } from '../../../../src/cli/doctor/permissions.ts';
import { texts } from '../../../../src/cli/doctor/texts.ts';
import { touchpointsOf } from '../../../../src/cli/doctor/touchpoints.ts';
import { readConfig } from '../../../../src/kit/config/config.ts';
import { diskMissing, withExt4, withTmpfs } from '../../../support/disk/disks.ts';
import { eventually } from '../../../support/eventually.ts';
import { makeDirectory } from '../../../support/temporary.ts';
import { texts as cliTexts } from '../../../../src/cli/texts.ts';

const never = new AbortController().signal;
const holding = (text: string): unknown => expect.stringContaining(text);
const matching = (pattern: RegExp): unknown => expect.stringMatching(pattern);

/** A time server whose clock is off by `ahead_ms`; its answers are made of the question. */
async function timeServer(
  answers: (question: Buffer) => readonly Buffer[],
): Promise<{ server: string; socket: Socket }> {
  const socket = createSocket('udp4');
  socket.on('message', (question, { port, address }) => {
    for (const answer of answers(question)) socket.send(answer, port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return { server: `127.0.0.1:${socket.address().port}`, socket };
}

/** RFC 4330: mode 4, stratum 2, the cookie given back, both times `ahead_ms` ahead. */
function answerOf(question: Buffer, ahead_ms: number, { stratum = 2 } = {}): Buffer {
  const answer = Buffer.alloc(48);
  answer[0] = 0x24;
  answer[1] = stratum;
  question.copy(answer, 24, 40, 48);
  for (const at of [32, 40]) {
    const time_s = (Date.now() + ahead_ms) / 1000 + 2_208_988_800;
    answer.writeUInt32BE(Math.floor(time_s), at);
    answer.writeUInt32BE(Math.floor((time_s % 1) * 2 ** 32), at + 4);
  }
  return answer;
}

describe('the clock', () => {
  test('is compared with a time server, and answers to others or without the time are ignored', async () => {
    const { server, socket } = await timeServer((question) => [
      Buffer.from('noise'),
      answerOf(Buffer.alloc(48, 7), 3_600_000),
      answerOf(question, 3_600_000, { stratum: 0 }),
      answerOf(question, 90_000),
    ]);
    onTestFinished(() => void socket.close());
    const [, against] = await checkClock({ server, trusted: false }, never);
    expect(against).toMatchObject({ level: 'fail', what: texts.clock_against(server) });
    expect(against?.finding).toMatch(/^(?:89|90) s behind$/u);
    expect(against?.remedy).toContain('timedatectl set-ntp true');
  });

  test('may be off by less than half a second, and a silent time server is a warning with its remedy', async () => {
    const right = await timeServer((question) => [answerOf(question, 20)]);
    const mute = await timeServer(() => []);
    try {
      expect((await checkClock({ server: right.server, trusted: false }, never))[1]?.level).toBe('ok');
      const over = new AbortController();
      const found = checkClock({ server: mute.server, trusted: false }, over.signal);
      await once(mute.socket, 'message');
      over.abort();
      expect((await found)[1]).toMatchObject({
        level: 'warn',
        finding: texts.no_answer('timed out'),
      });
    } finally {
      right.socket.close();
      mute.socket.close();
    }
  });

  test('time servers are addressed by names, ports and IPv6 addresses', async () => {
    expect(splitServer('ntp.example.com')).toEqual({ host: 'ntp.example.com', port: 123 });
    expect(splitServer('10.0.0.1:1123')).toEqual({ host: '10.0.0.1', port: 1123 });
    expect(splitServer('fd00::1')).toEqual({ host: 'fd00::1', port: 123 });
    expect(splitServer('[fd00::1]:1123')).toEqual({ host: 'fd00::1', port: 1123 });
    await expect(clockOffset('nowhere.invalid', never)).rejects.toThrow(/ENOTFOUND|EAI_AGAIN/u);
  });
});

function roomOf(bytes_min = 0) {
  return { bytes_min, low: texts.minimum_of_buffer, soon: texts.free_space_soon };
}

describe('the disk', () => {
  test('the disk check writes a file where the daemon will make its directory, and removes it', async () => {
    const dir = await makeDirectory();
    const findings = await checkDisk(join(dir, 'not', 'made', 'yet'), roomOf());
    expect(findings.map(({ level, what }) => [level, what])).toEqual([
      ['ok', 'disk space'],
      ['ok', 'disk write'],
    ]);
    expect(findings[0]?.finding).toContain(dir);
  });

  test.skipIf(diskMissing())('a full disk is found, with what to delete', async () => {
    await withTmpfs(2, async (dir) => {
      await expect(writeFile(join(dir, 'logs'), Buffer.alloc(4_000_000))).rejects.toThrow('ENOSPC');
      expect(await checkDisk(dir, roomOf(1_000_000))).toMatchObject([
        { level: 'fail', what: 'disk space', remedy: holding(cliTexts.free_space) },
        { level: 'fail', what: 'disk write', remedy: texts.free_space_full },
      ]);
    });
  });

  test.skipIf(diskMissing())('a disk that became read-only is found', async () => {
    await withExt4(8, async (dir, disk) => {
      disk.breakDown();
      await eventually('the kernel makes it read-only', async () =>
        (await checkDisk(dir, roomOf())).some(
          ({ level, finding }) => level === 'fail' && finding.includes('read-only file system'),
        ),
      );
    });
  });
});

describe('serial ports', () => {
  test('serial ports that are not connected are named with the remedy', async () => {
    expect(await checkSerialPorts([{ driver: 'drones', path: '/dev/serial/by-id/none' }])).toMatchObject([
      {
        level: 'fail',
        what: texts.serial_port('drones'),
        finding: matching(/^\/dev\/serial\/by-id\/none not found/u),
        remedy: holding('connect the radio'),
      },
    ]);
  });

  test('serial ports in use are reported with the name of the program, and fine once it has ended', async () => {
    const dir = await makeDirectory();
    const device = join(dir, 'ttyACM0');
    const link = join(dir, 'by-id');
    await writeFile(device, '');
    await symlink(device, link);
    const ports = [{ driver: 'drones', path: link }];
    const holder = spawn(
      process.execPath,
      ['-e', 'fs.openSync(process.env.DEVICE); setInterval(() => 0, 1e6); console.log(1)'],
      {
        env: { DEVICE: device },
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    const gone = once(holder, 'close');
    await once(holder.stdout, 'data');
    const [held] = await checkSerialPorts(ports);
    expect(held).toMatchObject({
      level: 'warn',
      finding: texts.port_used(link, `node (process ${holder.pid})`),
    });
    holder.kill();
    await gone;
    expect((await checkSerialPorts(ports))[0]?.level).toBe('ok');
  });

  test('serial ports that the daemon uses are not reported', async () => {
    const dir = await makeDirectory();
    const device = join(dir, 'ttyACM0');
    await writeFile(device, '');
    await mkdir(join(dir, 'proc', '77', 'fd'), { recursive: true });
    await symlink(device, join(dir, 'proc', '77', 'fd', '3'));
    const command = join(dir, 'proc', '77', 'cmdline');
    await writeFile(command, '/usr/lib/kit-connector/node\0run\0');
    const look = async () =>
      (await checkSerialPorts([{ driver: 'drones', path: device }], { proc: join(dir, 'proc') }))[0];
    expect((await look())?.level).toBe('ok');
    await writeFile(command, '/usr/sbin/ModemManager\0');
    expect(await look()).toMatchObject({
      level: 'warn',
      finding: texts.port_used(device, 'ModemManager (process 77)'),
    });
  });
});

describe('files', () => {
  test('files that others can change and secrets that others can read are reported with the command that corrects them', async () => {
    const dir = await makeDirectory();
    const file = join(dir, 'config.yaml');
    const levels = async (text: string, mode: number) => {
      await writeFile(file, text);
      await chmod(file, mode);
      return checkConfigFile(file);
    };
    expect((await levels('password_file: x\n', 0o644))[0]?.level).toBe('ok');
    expect((await levels('password: x\n', 0o640))[0]?.level).toBe('ok');
    expect(await levels('  password: x\n', 0o644)).toMatchObject([
      { level: 'warn', remedy: texts.run_chmod(file) },
    ]);
    expect(await levels('url: rtsp://me:you@1.2.3.4/\n', 0o644)).toMatchObject([{ level: 'warn' }]);
    expect(await levels('', 0o666)).toMatchObject([{ level: 'fail', remedy: texts.run_chmod_write(file) }]);
    expect(await checkConfigFile(join(dir, 'none'))).toEqual([]);
  });

  test('files of camera passwords must exist, have content and be closed to others', async () => {
    const dir = await makeDirectory();
    const path = (name: string): string => join(dir, name);
    await writeFile(path('open'), 'x', { mode: 0o644 });
    await writeFile(path('good'), 'x', { mode: 0o600 });
    await writeFile(path('empty'), '', { mode: 0o600 });
    const found = await checkSecretFiles(
      ['open', 'good', 'empty', 'none'].map((name) => ({ driver: 'cameras', path: path(name) })),
    );
    expect(found.map(({ level, remedy }) => [level, remedy])).toEqual([
      ['fail', texts.run_chmod(path('open'))],
      ['fail', texts.write_secret],
      ['fail', texts.write_readable_secret],
    ]);
  });
});

test('ports, hosts and secrets are found in the options of every driver, with the ports that they leave out', async () => {
  const dir = await makeDirectory();
  const file = join(dir, 'config.yaml');
  const camera = { username: 'u', password_file: '/secrets/gate' };
  const value = {
    kit_id: '3f0c1f6e-52a4-4c0e-9d6b-1f2a7c9e4b10',
    drivers: [
      { driver: 'location', options: { gpsd: {} } },
      {
        driver: 'mavlink',
        name: 'drones',
        options: {
          links: [
            { kind: 'serial', path: '/dev/ttyACM0' },
            { kind: 'udp_listen', host: '127.0.0.1', port: 14_550 },
            { kind: 'tcp_client', host: '10.0.0.9', port: 5_761 },
          ],
          endpoints: [
            { kind: 'tcp_listen', port: 5_770 },
            { kind: 'udp_listen', host: '10.0.0.1', port: 14_560 },
            { kind: 'tcp_client', host: '10.0.0.8', port: 5_772 },
            { kind: 'udp_client', host: '10.0.0.8', port: 14_550 },
          ],
        },
      },
      {
        driver: 'onvif',
        options: {
          cameras: [
            { name: 'Gate', host: '10.0.0.5', ...camera },
            { name: 'Yard', host: '10.0.0.6', tls: {} },
          ],
        },
      },
      {
        driver: 'vendorcam',
        options: { hosts: [{ name: 'Door', host: '10.0.0.7', password_file: '/secrets/door' }] },
      },
    ],
  };
  await writeFile(file, JSON.stringify(value));
  const config = await readConfig(file, { drivers, credentials_dir: undefined });
  // What of them is missing is a fault of the configuration; here it is what the doctor looks at.
  const sections = {
    broker: { key_file: 'key', ca_file: 'ca', urls: [{ url: 'mqtts://b', password_file: '/secrets/b' }] },
    metrics: { listen: '0.0.0.0:9464', token_file: 'token', tls: { cert_file: 'cert', key_file: 'key' } },
  };
  const named = touchpointsOf(sections, [], '/etc/kit').secrets;
  expect(named.map(({ driver, path, isPublic = false }) => [driver, path, isPublic])).toEqual([
    ['the broker', '/etc/kit/key', false],
    ['the broker', '/etc/kit/ca', true],
    ['the broker', '/secrets/b', false],
    ['the metrics', '/etc/kit/token', false],
    ['the metrics', '/etc/kit/cert', true],
    ['the metrics', '/etc/kit/key', false],
  ]);
  expect(touchpointsOf(value, config.drivers, '/etc/kit')).toEqual({
    ports: [{ driver: 'drones', path: '/dev/ttyACM0' }],
    hosts: [
      { driver: 'location', host: '127.0.0.1', port: 2_947 },
      { driver: 'drones', host: '10.0.0.9', port: 5_761 },
      { driver: 'drones', host: '10.0.0.8', port: 5_772 },
      { driver: 'onvif', name: 'Gate', host: '10.0.0.5', port: 80 },
      { driver: 'onvif', name: 'Yard', host: '10.0.0.6', port: 443 },
      { driver: 'vendorcam', name: 'Door', host: '10.0.0.7', port: 443 },
    ],
    secrets: [
      { driver: 'onvif', path: '/secrets/gate' },
      { driver: 'vendorcam', path: '/secrets/door' },
    ],
    listeners: [
      { what: 'driver drones', protocol: 'udp', host: '127.0.0.1', port: 14_550 },
      { what: 'driver drones', protocol: 'tcp', host: '127.0.0.1', port: 5_770 },
      { what: 'driver drones', protocol: 'udp', host: '10.0.0.1', port: 14_560 },
    ],
  });
});

test('the journal is named when this user may not read it, with the group that may', async () => {
  const dir = await makeDirectory();
  const folder = join(dir, 'machine');
  await mkdir(folder);
  const asked: string[] = [];
  const denied = async (file: string): Promise<boolean> => asked.push(file) > 0;
  expect(await checkJournal([join(dir, 'none'), dir], denied)).toEqual([
    { level: 'ok', what: 'journal', finding: texts.journal_denied, remedy: texts.join_adm },
  ]);
  expect(asked).toEqual([join(folder, 'system.journal')]);
  expect(await checkJournal([dir])).toEqual([]);
  await writeFile(join(folder, 'system.journal'), '');
  expect(await checkJournal([dir])).toEqual([]);
});
