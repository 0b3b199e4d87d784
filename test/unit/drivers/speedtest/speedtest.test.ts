/** The speedtest driver against a web server that misbehaves on command. */
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  speedtestOptions,
  speedtest,
  chooseWay,
  defaultDevice,
} from '../../../../drivers/speedtest/speedtest.ts';
import { texts } from '../../../../drivers/speedtest/texts.ts';
import { speedtest as speedtestResult } from '../../../../src/contract/kit.ts';
import { CommandRefused } from '../../../../src/platform/errors.ts';
import { type FakeSpeedServer, startSpeedServer } from '../../../fakes/services/fake-speed-server.ts';
import { makeCertificates } from '../../../support/certificates.ts';
import { driverConformance } from '../../../support/drivers/driver-conformance.ts';
import { driverLab } from '../../../support/drivers/driver-lab.ts';
import { eventually } from '../../../support/eventually.ts';
import { peerMissing } from '../../../support/peers.ts';
import { withDirectory } from '../../../support/temporary.ts';

let server: FakeSpeedServer;
beforeEach(async () => {
  server = await startSpeedServer();
});
afterEach(async () => server.stop());

const serverAt = (origin: string, more: object = {}) => ({
  name: 'near',
  download_url: `${origin}/down?bytes={bytes}`,
  upload_url: `${origin}/up`,
  ...more,
});

function start(more: object = {}, about: { readonly state_dir?: string } = {}) {
  const options = { servers: [serverAt(server.origin)], bytes_max: 1_000_000, seconds_max: 2, ...more };
  const lab = driverLab(speedtest, options, about);
  const stop = new AbortController();
  const told: { message: string; pct: number }[] = [];
  const context = {
    signal: stop.signal,
    progress: (message: string, pct = -1) => void told.push({ message, pct }),
    remaining_ms: () => 60_000,
  };
  return {
    ...lab,
    told,
    cancel: () => stop.abort(),
    command: async () => {
      await lab.until('the command', () => lab.shown.commands.length === 1);
      const [command] = lab.shown.commands;
      if (!command) throw new Error('no command');
      return command;
    },
    async test(payload: object = {}) {
      const command = await this.command();
      return command.read({ link: 'lo', ...payload }).run(context);
    },
  };
}

describe('the speedtest driver', () => {
  driverConformance({
    driver: speedtest,
    options: () => ({ servers: [serverAt('http://127.0.0.1:9')] }),
    peer: {
      start: async () => undefined,
      lose: async () => undefined,
      restore: async () => undefined,
      stop: async () => undefined,
    },
    without: { loss: 'it has no device of its own: it speaks only when it is asked to' },
  });
});

it('measures both directions within its limits, reports them and its progress', async () => {
  server.bytes_per_s = 400_000;
  const lab = start({ bytes_max: 400_000 });
  const result = await lab.test();
  expect(result).toMatchObject({ link: 'lo', server: 'near' });
  expect(speedtestResult.parse(lab.kit.speedtest)).toMatchObject({
    download_mbps: result['download_mbps'],
    upload_mbps: result['upload_mbps'],
  });
  expect(lab.kit.speedtest?.latency_ms).toBeGreaterThanOrEqual(0);
  // Four connections of 3.2 Mbit/s each. A busy machine may be slower, never faster.
  for (const name of ['download_mbps', 'upload_mbps']) {
    expect(result[name]).toBeGreaterThan(0.5);
    expect(result[name]).toBeLessThan(16);
  }
  expect(server.moved.down).toBe(400_000);
  expect(server.moved.up).toBe(400_000);
  expect(lab.told.some(({ message }) => message.startsWith('download'))).toBe(true);
  expect(lab.told.some(({ message, pct }) => message.startsWith('upload') && pct >= 50)).toBe(true);
  await lab.stop();
});

it('stops at its time on a slow link, and has measured what came', async () => {
  server.bytes_per_s = 100_000;
  const lab = start({ bytes_max: 1_000_000_000, seconds_max: 2, connections: 4 });
  const result = await lab.test();
  expect(result['download_mbps']).toBeGreaterThan(0);
  expect(result['bytes_down']).toBeLessThan(10_000_000);
  await eventually('nothing is left open', () => server.open() === 0);
  await lab.stop();
});

it('stops at its bytes when the server does not', async () => {
  const servers = [serverAt(server.origin, { download_url: `${server.origin}/file?bytes=500000000` })];
  const lab = start({ servers, bytes_max: 300_000, connections: 2 });
  const result = await lab.test();
  // What was under way when the limit was reached is one piece for each connection.
  expect(result['bytes_down']).toBeLessThan(600_000);
  await eventually('nothing is left open', () => server.open() === 0);
  await lab.stop();
});

it.each([
  ['redirect', /HTTP status 302 to http:\/\/elsewhere\.invalid\/file; configure the target of the redirect/u],
  ['error', /HTTP status 503/u],
  ['short', /only 8000 bytes transferred within 2 s.* larger file/u],
  ['reset', /download over lo: the server closed the connection/u],
  ['early', /download over lo: .*too little/u],
  ['stall', /too little|no data transferred/u],
] as const)('refuses to make a figure of a server that answers with %s', async (manner, sentence) => {
  server.manner = manner;
  const lab = start();
  const refusal: unknown = await lab.test().catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(CommandRefused);
  expect(String(refusal)).toMatch(sentence);
  expect(lab.kit.speedtest).toBeUndefined();
  await eventually('nothing is left open', () => server.open() === 0);
  await lab.stop();
});

it('counts an upload only as far as it was answered', async () => {
  const taking = await startSpeedServer();
  const lab = start({ servers: [serverAt(server.origin, { upload_url: `${taking.origin}/up` })] });
  await expect(lab.test()).resolves.toMatchObject({ bytes_up: 1_000_000 });
  expect(taking.moved.up).toBe(1_000_000);
  taking.manner = 'deaf';
  await expect(lab.test()).rejects.toThrow(/upload over lo: only 0 bytes transferred within 2 s/u);
  taking.manner = 'reset';
  await expect(lab.test()).rejects.toThrow(/upload over lo: /u);
  await taking.stop();
  await lab.stop();
});

it.each(['closing', 'strict'] as const)(
  'measures a server that is %s both ways, up to its bytes',
  async (manner) => {
    server.manner = manner;
    const lab = start({ bytes_max: 20_000_000, seconds_max: 20, connections: 2 });
    const result = await lab.test();
    expect(result['bytes_up']).toBe(20_000_000);
    expect(result['bytes_down']).toBeGreaterThanOrEqual(20_000_000);
    expect(result['upload_mbps']).toBeGreaterThan(0);
    await eventually('nothing is left open', () => server.open() === 0);
    await lab.stop();
  },
);

it('gives up on a connection on which nothing moves any more', async () => {
  server.manner = 'deaf';
  const lab = start({ seconds_max: 60 });
  await expect(lab.test()).rejects.toThrow(texts.failed('download', 'lo', texts.stalled(10)));
  await lab.stop();
});

it('stops all traffic at once when the task is cancelled or the driver ends', async () => {
  server.bytes_per_s = 50_000;
  for (const way of ['cancel', 'abort'] as const) {
    const lab = start({ bytes_max: 100_000_000, seconds_max: 60 });
    const test = lab.test();
    await eventually('data flow', () => server.moved.down > 100_000);
    server.moved.down = 0;
    lab[way]();
    await expect(test).rejects.toThrow(texts.stopped_unrecorded);
    await eventually('nothing is left open', () => server.open() === 0);
    await lab.stop();
  }
});

it('runs one test at a time', async () => {
  server.bytes_per_s = 50_000;
  const lab = start({ bytes_max: 100_000_000, seconds_max: 60 });
  const first = lab.test();
  await eventually('data flow', () => server.moved.down > 0);
  await expect(lab.test()).rejects.toThrow(/already running/u);
  lab.cancel();
  await expect(first).rejects.toThrow(CommandRefused);
  await lab.stop();
});

it('sends nothing over a metered link unless the payload allows it', async () => {
  await withDirectory(async (sys) => {
    await mkdir(join(sys, 'class/net/wwx1'), { recursive: true });
    await writeFile(join(sys, 'class/net/wwx1/uevent'), 'DEVTYPE=wwan\nINTERFACE=wwx1\n');
    const modem = start({ roots: { sys } });
    await expect(modem.test({ link: 'wwx1' })).rejects.toThrow(/wwx1 is metered; nothing was sent/u);
    await modem.stop();
  });
  const lab = start({ metered: ['lo'], bytes_max: 200_000 });
  await expect(lab.test()).rejects.toThrow(/Set allow_metered/u);
  expect(server.moved).toEqual({ down: 0, up: 0 });
  await expect(lab.test({ allow_metered: true })).resolves.toMatchObject({ link: 'lo' });
  await lab.stop();
});

it.each([
  ['satellite', true],
  ['cellular', true],
  ['ethernet', false],
  [null, true],
] as const)('takes ppp7 for metered as a link of type %s: %s', async (type, metered) => {
  await withDirectory(async (sys) => {
    await mkdir(join(sys, 'class/net/ppp7'), { recursive: true });
    await writeFile(join(sys, 'class/net/ppp7/uevent'), 'INTERFACE=ppp7\n');
    const options = speedtestOptions.parse({ servers: [serverAt(server.origin)], roots: { sys } });
    expect(await chooseWay(options, 'ppp7', (name) => (name === 'ppp7' ? type : null))).toEqual({
      device: 'ppp7',
      metered,
    });
  });
});

it.each(['no-such0', '../../../etc', '..'])(
  'refuses the link %s, which the kit does not have',
  async (link) => {
    const lab = start();
    await expect(lab.test({ link })).rejects.toThrow(/there is no link/u);
    await lab.stop();
  },
);

it('names the servers that are configured, and reports why one cannot be reached', async () => {
  const lab = start();
  await expect(lab.test({ server: 'far' })).rejects.toThrow(
    'no server is named "far"; the configured servers are near',
  );
  const nowhere = start({ servers: [serverAt('http://127.0.0.1:9')] });
  await expect(nowhere.test()).rejects.toThrow(/127\.0\.0\.1 port 9 over lo: connection refused/u);
  const unnamed = start({ servers: [serverAt('http://no-such-host.invalid')] });
  await expect(unnamed.test()).rejects.toThrow(/no-such-host\.invalid/u);
  const unrouted = start({ servers: [serverAt('http://192.0.2.1')] });
  await expect(unrouted.test()).rejects.toThrow(/192\.0\.2\.1 port 80 over lo: /u);
  for (const each of [lab, nowhere, unnamed, unrouted]) await each.stop();
});

it('leaves the upload unknown where the server takes none', async () => {
  const { upload_url: _, ...only_down } = serverAt(server.origin);
  const lab = start({ servers: [only_down] });
  await expect(lab.test()).resolves.toMatchObject({ upload_mbps: null, bytes_up: 0 });
  expect(server.moved.up).toBe(0);
  await lab.stop();
});

it('shows the last result after a restart, and forgets one that cannot be read', async () => {
  await withDirectory(async (state_dir) => {
    const first = start({ bytes_max: 200_000 }, { state_dir });
    await first.test();
    await first.stop();
    const file = join(state_dir, 'last-result.json');
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const second = start({}, { state_dir });
    await second.command();
    expect(second.kit.speedtest).toEqual(first.kit.speedtest);
    await second.stop();
    await writeFile(file, '{"download_mbps":');
    const third = start({}, { state_dir });
    await third.command();
    expect(third.kit.speedtest).toBeUndefined();
    expect(third.log.at('warn')).toEqual([texts.unreadable]);
    await third.stop();
  });
});

describe.skipIf(peerMissing('openssl'))('over TLS', () => {
  it('measures a server of a private authority, and refuses one of an unknown authority', async () => {
    await withDirectory(async (dir) => {
      const made = await makeCertificates(dir, 'kit');
      const [cert, key] = await Promise.all(
        [made.server.cert, made.server.key].map(async (file) => readFile(file, 'utf8')),
      );
      const secure = await startSpeedServer({ cert: cert ?? '', key: key ?? '' });
      const lab = start({ servers: [serverAt(secure.origin, { ca_file: made.ca })], bytes_max: 300_000 });
      await expect(lab.test()).resolves.toMatchObject({ bytes_down: 300_000 });
      const stranger = start({ servers: [serverAt(secure.origin)] });
      await expect(stranger.test()).rejects.toThrow(/download over lo: .*certificate/u);
      await lab.stop();
      await stranger.stop();
      await secure.stop();
    });
  });
});

it('takes the default route with the lowest metric, and none that is down or leads to one net only', () => {
  const row = (device: string, destination: string, flags: string, metric: number) =>
    [device, destination, '0101A8C0', flags, '0', '0', metric, '00000000', '0', '0', '0'].join('\t');
  const table = [
    'Iface\tDestination',
    row('wwan0', '00000000', '0003', 700),
    row('eth1', '00000000', '0003', 100),
  ];
  expect(defaultDevice(table.join('\n'))).toBe('eth1');
  expect(defaultDevice([...table, row('sat0', '00000000', '0002', 1)].join('\n'))).toBe('eth1');
  expect(defaultDevice(['Iface', row('eth0', '0000A8C0', '0001', 0)].join('\n'))).toBeUndefined();
});

it('asks for approval, and refuses addresses that hold credentials', async () => {
  const lab = start();
  expect(await lab.command()).toMatchObject({
    name: 'speedtest',
    risk_level: 'medium',
    requires_approval: true,
  });
  await lab.stop();
  const servers = [{ name: 'x', download_url: 'http://me:secret@host/' }];
  expect(() => speedtest.configure({ servers })).toThrow(/user name or password/u);
  expect(() => speedtest.configure({ servers: [] })).toThrow(z.ZodError);
});
