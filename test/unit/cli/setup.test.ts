/** What setup writes, what it never overwrites, and what the drivers suggest to it. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { drivers } from '../../../drivers/index.ts';
import { checksum } from '../../../drivers/mavlink/wire/checksum.ts';
import { suggest as suggestVehicles } from '../../../drivers/mavlink/suggest.ts';
import { SimVehicle } from '../../../drivers/mavlink/sim/sim-vehicle.ts';
import { suggest as suggestModems } from '../../../drivers/modem/suggest.ts';
import { suggest as suggestCameras } from '../../../drivers/onvif/suggest.ts';
import { suggest as suggestDishes } from '../../../drivers/starlink/suggest.ts';
import { terminalAsk } from '../../../src/cli/terminal/ask.ts';
import { scan } from '../../../src/cli/setup.ts';
import { configText } from '../../../src/cli/setup/text.ts';
import { texts } from '../../../src/cli/texts.ts';
import { type Config, readConfig } from '../../../src/kit/config/config.ts';
import { startFakeDish } from '../../fakes/fake-dish.ts';
import { startFakeModemManager } from '../../fakes/services/fake-modem-manager.ts';
import { makeMessageBus } from '../../support/drivers/message-bus.ts';
import { peerMissing } from '../../support/peers.ts';
import { makeDirectory } from '../../support/temporary.ts';
import { typed } from './setup-typed.ts';
import { freePort } from '../../support/ports.ts';

const kit_id = '3f0c1f6e-52a4-4c0e-9d6b-1f2a7c9e4b10';
const no_dirs = { state_dir: undefined, runtime_dir: undefined };
const never = new AbortController().signal;

async function read(file: string): Promise<Config> {
  return readConfig(file, { drivers, credentials_dir: undefined });
}

test('setup makes a configuration from flags alone that check accepts, with the password in a separate file', async () => {
  const dir = await makeDirectory();
  await writeFile(join(dir, 'given'), 'pass word\n');
  const given = ['--broker', 'mqtt://127.0.0.1:1883', '--password-file', join(dir, 'given')];
  const { code, file, stdout } = await typed(dir, [
    ...given,
    '--no-ask',
    '--kit-id',
    kit_id,
    '--kit-name',
    'Kit: 7 # really',
  ]);
  expect(code).toBe(0);
  expect(stdout).toContain('kit-connector doctor');
  const config = await read(file);
  expect(config).toMatchObject({ kit_id, kit_name: 'Kit: 7 # really' });
  expect(config.broker).toMatchObject({
    url: 'mqtt://127.0.0.1:1883',
    username: kit_id,
    password: 'pass word',
  });
  expect(config.drivers.map(({ name }) => name)).toEqual(['gateway', 'links']);
  expect((await stat(join(dir, 'mqtt-password'))).mode & 0o777).toBe(0o600);
  expect(await readFile(file, 'utf8')).not.toContain('pass word');
});

test('setup asks for what no flag gives, and hides the password', async () => {
  const dir = await makeDirectory();
  const asked: string[] = [];
  const answers = [kit_id.toUpperCase(), '', 'mqtt://127.0.0.1:1883', '', 'secret'];
  const { code, file } = await typed(dir, [], async (question, { hidden }) => {
    asked.push(`${hidden ? 'hidden ' : ''}${question}`);
    return answers[asked.length - 1] ?? '';
  });
  expect(code).toBe(0);
  expect(asked.map((each) => each.replace(/[[:(].*/u, '').trim())).toEqual([
    'kit id',
    texts.ask_kit_name,
    'broker, such as mqtts',
    texts.ask_username_of(),
    'hidden password for the broker',
  ]);
  const { kit_name, broker } = await read(file);
  expect([kit_name, broker?.password]).toEqual([undefined, 'secret']);
});

test('setup replaces an existing configuration only with --force, keeps a copy, and keeps the kit id', async () => {
  const dir = await makeDirectory();
  const own = `kit_id: ${kit_id}\nbroker: { url: 'mqtt://127.0.0.1:1' }\n`;
  await writeFile(join(dir, 'config.yaml'), own);
  const refused = await typed(dir, ['--no-ask']);
  expect(refused.code).toBe(64);
  expect(refused.stderr).toContain('--force');
  expect(await readFile(refused.file, 'utf8')).toBe(own);
  expect(await readdir(dir)).toEqual(['config.yaml']);

  expect((await typed(dir, ['--no-ask', '--force', '--broker', 'none'])).code).toBe(0);
  expect(await readFile(join(dir, 'config.yaml.before-setup'), 'utf8')).toBe(own);
  expect((await read(refused.file)).kit_id).toBe(kit_id);
  // It names no broker yet, as the one of a package does: nothing of somebody is lost.
  expect((await typed(dir, ['--no-ask', '--broker', 'mqtt://127.0.0.1:2'])).code).toBe(0);
  const { broker, kit_id: kept } = await read(refused.file);
  expect([broker?.url, kept]).toEqual(['mqtt://127.0.0.1:2', kit_id]);
});

test('setup reports a wrong address as check does, with its exit code, and changes no file', async () => {
  const dir = await makeDirectory();
  const before = `kit_id: ${kit_id}\nbroker: { url: none }\n`;
  await writeFile(join(dir, 'config.yaml'), before);
  await writeFile(join(dir, 'given'), 'secret\n');
  const words = ['--no-ask', '--broker', 'broker.example.com', '--password-file', join(dir, 'given')];
  const { code, file, stdout, stderr } = await typed(dir, words);
  expect({ code, stdout }).toEqual({ code: 78, stdout: '' });
  expect(stderr).toMatch(/^nothing was written:\n/u);
  expect(stderr).toMatch(new RegExp(`${file}:\\d+:\\d+ broker\\.url: .*write it like mqtts://`, 'u'));
  expect(await readFile(file, 'utf8')).toBe(before);
  expect((await readdir(dir)).toSorted()).toEqual(['config.yaml', 'given']);
});

test('setup rejects an invalid answer and asks again', async () => {
  const dir = await makeDirectory();
  const asked: string[] = [];
  const answers = ['kit seven', kit_id, '', 'broker.example.com', 'mqtt://127.0.0.1:1883', '', ''];
  const { code, file, stderr } = await typed(dir, [], async (question) => {
    asked.push(question.replace(/[[:,(].*/u, '').trim());
    return answers[asked.length - 1] ?? '';
  });
  expect(code).toBe(0);
  expect(asked).toEqual([
    'kit id',
    'kit id',
    texts.ask_kit_name,
    'broker',
    'broker',
    texts.ask_username_of(),
    'password for the broker',
  ]);
  expect(stderr).toContain('"kit seven" is not a UUID; press Enter to accept the default');
  expect(stderr).toContain('"broker.example.com" is not a broker address; write mqtts://host:port');
  expect((await read(file)).broker?.url).toBe('mqtt://127.0.0.1:1883');
});

test('setup writes a readable file whatever names devices report', async () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 40 });
  const dir = await makeDirectory();
  const file = join(dir, 'config.yaml');
  const property = fc.asyncProperty(text, text, fc.boolean(), async (what, name, complete) => {
    const options = { cameras: [{ name: name.trim() === '' ? 'x' : name, host: '10.0.0.5' }] };
    const answers = { kit_id, kit_name: undefined, broker_url: 'none' };
    const none = { username: undefined, password_file: undefined, ca_file: undefined, ...no_dirs };
    await writeFile(
      file,
      configText({ ...answers, ...none }, [{ driver: 'onvif', what, options, complete }]),
    );
    expect((await read(file)).drivers).toHaveLength(complete ? 3 : 2);
  });
  await fc.assert(property, { numRuns: 40 });
});

test('setup writes two cameras into one section, which is valid once it is completed', async () => {
  const camera = (host: string) => ({
    driver: 'onvif',
    what: `ONVIF camera at ${host}`,
    options: { cameras: [{ name: host, host }] },
    complete: false,
  });
  const answers = { kit_id, kit_name: undefined, broker_url: 'none', username: undefined };
  const text = configText({ ...answers, password_file: undefined, ca_file: undefined, ...no_dirs }, [
    camera('10.0.0.5'),
    camera('10.0.0.6'),
  ]);
  const dir = await makeDirectory();
  const file = join(dir, 'config.yaml');
  await writeFile(file, text.replaceAll(/^ {2}# (?=[- ] )/gmu, '  '));
  expect((await read(file)).drivers.map(({ name }) => name)).toEqual(['gateway', 'links', 'onvif']);
});

test('setup puts the ports of vehicles into one section and survives drivers that fail or hang', async () => {
  const link = (port: number) => ({
    what: `${port}`,
    options: { links: [{ kind: 'udp_listen', port }] },
    complete: true,
  });
  const found = await scan(
    [
      { name: 'mavlink', suggest: async () => [link(14_550), link(14_551)] },
      { name: 'modem', suggest: async () => Promise.reject(new Error('no bus')) },
      { name: 'starlink', suggest: async () => new Promise(() => undefined) },
      { name: 'gateway' },
    ],
    20,
    never,
  );
  const dir = await makeDirectory();
  const file = join(dir, 'config.yaml');
  const answers = { kit_id, kit_name: undefined, broker_url: 'none', username: undefined };
  await writeFile(
    file,
    configText({ ...answers, password_file: undefined, ca_file: undefined, ...no_dirs }, found),
  );
  expect((await read(file)).drivers.map(({ name }) => name)).toEqual(['gateway', 'links', 'mavlink']);
  expect(await readFile(file, 'utf8')).toContain('port: 14551');
});

test('a secret answer is not shown, and Ctrl-C ends the question', async () => {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const shown: string[] = [];
  output.on('data', (chunk: Buffer) => shown.push(chunk.toString()));
  const ask = terminalAsk(input, output, never);
  const secret = ask('password: ', { hidden: true });
  input.write('geheim\n');
  expect(await secret).toBe('geheim');
  const open = ask('name: ', { hidden: false });
  input.write('Kit 7\n');
  expect(await open).toBe('Kit 7');
  expect(shown.join('')).toContain('Kit 7');
  expect(shown.join('')).not.toContain('geheim');
  // The terminal clears the line whenever it is drawn anew: what comes after that is seen.
  const [line] = shown.join('').split('\n').slice(-2);
  expect(line?.split('\u001B[0J').at(-1)).toContain('name: ');
  const left = ask('name: ', { hidden: false });
  input.write('\u0003');
  await expect(left).rejects.toThrow(texts.cancelled);
});

test('a line feed that comes behind its carriage return is no answer to the next question, nor is what else was pasted', async () => {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const shown: string[] = [];
  output.on('data', (chunk: Buffer) => shown.push(chunk.toString()));
  const ask = terminalAsk(input, output, never);
  const first = ask('name: ', { hidden: false });
  input.write('Kit 7\r');
  expect(await first).toBe('Kit 7');
  const second = ask('broker: ', { hidden: false });
  input.write('\n');
  input.write('none\r\nu\r\ngeheim\r\n');
  expect(await second).toBe('none');
  const third = ask('user: ', { hidden: false });
  input.write('\n');
  expect(await third).toBe('');
  expect(shown.join('')).not.toContain('geheim');
});

/** MAVLink 1, HEARTBEAT of a ground station (MAV_TYPE_GCS) with the system id 255. */
function stationHeartbeat(): Buffer {
  const body = [9, 0, 255, 190, 0, 0, 0, 0, 0, 6, 8, 0, 0, 3];
  const crc = checksum(Uint8Array.from(body), 0, body.length, 50);
  return Buffer.from([0xfe, ...body, crc & 0xff, crc >>> 8]);
}

describe('A driver that scans for devices', () => {
  test('finds vehicles but no ground stations, and lists serial ports to be confirmed', async () => {
    const dir = await makeDirectory();
    await mkdir(join(dir, 'by-id'));
    await writeFile(join(dir, 'by-id', 'usb-radio'), '');
    const port = await freePort();
    const silent_port = await freePort();
    const over = new AbortController();
    const looking = suggestVehicles(over.signal, {
      ports: [port, silent_port],
      serial_dir: join(dir, 'by-id'),
    });
    const home = { lat: 47, lon: 8, alt_amsl_m: 400 };
    const drone = {
      autopilot: 'ardupilot',
      sysid: 7,
      uid: '1',
      host: '127.0.0.1',
      port,
      home,
      airborne: false,
    } as const;
    const station = createSocket('udp4');
    const flying = new SimVehicle(drone, over.signal);
    await flying.start();
    station.send(stationHeartbeat(), port, '127.0.0.1');
    station.send(stationHeartbeat(), silent_port, '127.0.0.1');
    // Its heartbeats come once a second; the second one is not needed.
    const timer = setTimeout(() => over.abort(), 2_500);
    const found = await looking;
    clearTimeout(timer);
    station.close();
    expect(found).toEqual([
      {
        what: `MAVLink on UDP port ${port}: system 7`,
        options: { links: [{ kind: 'udp_listen', port }] },
        complete: true,
      },
      {
        what: 'serial port usb-radio: a telemetry radio or an autopilot?',
        options: { links: [{ kind: 'serial', path: join(dir, 'by-id', 'usb-radio') }] },
        complete: false,
      },
    ]);
  });

  test('finds a camera that answers, with the place of its password left to the technician', async () => {
    const camera = createSocket('udp4');
    camera.on('message', (probe, { port, address }) => {
      const id = /urn:uuid:[\w-]+/u.exec(probe.toString())?.[0] ?? '';
      const scopes = 'onvif://www.onvif.org/name/Gate onvif://www.onvif.org/hardware/C100';
      const match = `<d:ProbeMatch><a:EndpointReference><a:Address>urn:uuid:1</a:Address></a:EndpointReference><d:Scopes>${scopes}</d:Scopes><d:XAddrs>http://127.0.0.1:8080/onvif/device_service</d:XAddrs></d:ProbeMatch>`;
      camera.send(`<e><a:RelatesTo>${id}</a:RelatesTo>${match}</e>`, port, address);
    });
    camera.bind(0, '127.0.0.1');
    await once(camera, 'listening');
    const found = await suggestCameras(AbortSignal.timeout(400), {
      target: { host: '127.0.0.1', port: camera.address().port },
    });
    camera.close();
    expect(found).toMatchObject([{ what: 'ONVIF camera at 127.0.0.1: Gate, C100', complete: false }]);
    expect(found[0]?.options).toEqual({
      cameras: [
        {
          name: 'Gate',
          host: '127.0.0.1',
          port: 8_080,
          username: 'admin',
          password_file: '/etc/kit-connector/secrets/camera-127.0.0.1',
        },
      ],
    });
  });

  test('finds the link of a dish, and nothing where none answers', async () => {
    const dish = await startFakeDish();
    const where = { host: '127.0.0.1', port: dish.port };
    const loopback = Object.entries(networkInterfaces()).find(([, all]) =>
      all?.some(({ address }) => address === '127.0.0.1'),
    )?.[0];
    expect(await suggestDishes(never, where)).toEqual([
      { what: `Starlink dish behind ${loopback}`, options: { link: loopback }, complete: true },
    ]);
    await dish.lose();
    await expect(suggestDishes(never, where)).rejects.toThrow('connection refused');
  });

  test.skipIf(peerMissing('dbus-daemon'))('finds the modems of ModemManager', async () => {
    const bus = await makeMessageBus();
    await bus.start();
    const manager = await startFakeModemManager(bus.address);
    try {
      expect(await suggestModems(never, { address: bus.address })).toEqual([]);
      manager.add({ index: 0 });
      expect(await suggestModems(never, { address: bus.address })).toMatchObject([
        { options: {}, complete: true },
      ]);
    } finally {
      manager.stop();
      await bus.stop();
    }
  });
});

test('setup names files that cannot be read or written with their remedy', async () => {
  const dir = await makeDirectory();
  const astray = await typed(join(dir, 'nowhere'), ['--no-ask', '--broker', 'none']);
  expect(astray).toMatchObject({
    code: 1,
    stderr: texts.unwritable(
      astray.file,
      'no such file or directory',
      'create its directory, or choose another path\n',
    ),
  });
  const absent = join(dir, 'absent');
  const words = ['--no-ask', '--broker', 'mqtts://b', '--password-file', absent];
  expect(await typed(dir, words)).toMatchObject({
    code: 1,
    stderr: `--password-file: ${absent} cannot be read (no such file or directory); create it or name another file\n`,
  });
  expect(await readdir(dir)).toEqual([]);
});
