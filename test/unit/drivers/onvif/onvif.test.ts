/** The onvif driver against fake cameras: found, lost, refused, replaced, stopped. */
import { X509Certificate } from 'node:crypto';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { Agent } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { onvif } from '../../../../drivers/onvif/onvif.ts';
import { texts } from '../../../../drivers/onvif/texts.ts';
import { agentFor } from '../../../../drivers/onvif/soap/transport.ts';
import {
  type FakeCameraSettings,
  startFakeCamera,
  type FakeCamera,
} from '../../../fakes/fake-onvif-camera.ts';
import { makeCertificates } from '../../../support/certificates.ts';
import { withDirectory } from '../../../support/temporary.ts';
import { driverConformance } from '../../../support/drivers/driver-conformance.ts';
import { elapse } from '../../../support/elapse.ts';
import { eventually } from '../../../support/eventually.ts';
import { isStatus, labOfEachTest, said } from '../../../support/cameras/onvif-lab.ts';
import { texts as driverTexts } from '../../../../src/toolkit/driver/texts.ts';

const lab = labOfEachTest();

describe('conformance', () => {
  let camera: FakeCamera | undefined;
  let dir: string;
  let options: Record<string, unknown> = {};
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'kit-connector-'));
  });
  afterEach(async () => rm(dir, { recursive: true, force: true }));
  driverConformance({
    driver: onvif,
    options: () => (camera ? options : { cameras: [{ name: 'gate', host: '127.0.0.1' }] }),
    peer: {
      async start() {
        camera ??= await startFakeCamera();
        await camera.restore();
        const password_file = join(dir, 'password');
        await writeFile(password_file, camera.settings.password, { mode: 0o600 });
        const { port } = camera;
        options = {
          pull_s: 5,
          cameras: [{ name: 'gate', host: '127.0.0.1', port, username: 'kit', password_file }],
        };
      },
      lose: async () => camera?.lose(),
      restore: async () => camera?.restore(),
      stop: async () => camera?.stop(),
    },
  });
});

it('announces a camera by its serial number as it is written, with its stream and its commands', async () => {
  const camera = await lab.start();
  const { outbox } = lab.run({ cameras: [await lab.entry(camera, { name: 'Gate' })] });
  await outbox.until(isStatus('online'));
  const announced = outbox.drafts.find(({ data }) => data && 'asset_key' in data);
  expect(announced?.data).toMatchObject({
    asset_key: 'onvif:acme:007:12345678901234567890',
    name: 'Gate',
    vendor: 'Acme',
    model: '007',
    firmware: '1.0',
    protocol: 'onvif',
    status: 'online',
  });
  const commands = outbox.drafts.find(({ data }) => data && 'commands' in data);
  expect(JSON.stringify(commands?.data)).toMatch(/ptz_move.*ptz_preset/u);
  await outbox.until(said('status', (data) => data['online'] === true));
  expect(JSON.stringify(outbox.drafts)).not.toContain('ssw');
});

it('finds the profile that moves at the end of a reply that is large', async () => {
  const camera = await lab.start();
  const still = Array.from(
    { length: 60 },
    (_, index) => `<Profiles token="P${index}"><Name>${'n'.repeat(1_000)}</Name></Profiles>`,
  );
  const moving = '<Profiles token="PTZ"><PTZConfiguration token="C"/></Profiles>';
  camera.misbehave('GetProfiles', {
    body: `<GetProfilesResponse>${still.join('')}${moving}</GetProfilesResponse>`,
  });
  const { outbox } = await lab.serve(camera);
  const commands = outbox.drafts.find(({ data }) => data && 'commands' in data);
  expect(JSON.stringify(commands?.data)).toContain('ptz_move');
});

it('offers no commands for a camera that cannot move and gives no pictures', async () => {
  const { outbox } = await lab.startServed({ ptz: false, snapshot: undefined });
  const lists = outbox.drafts.filter(({ data }) => data && 'commands' in data);
  expect(lists.every(({ data }) => JSON.stringify(data?.['commands']) === '[]')).toBe(true);
});

it.each([
  ['logs in with WS-Security alone', { auth: 'ws_security' }],
  ['logs in with HTTP digest where a WS-Security header is refused', { auth: 'digest' }],
  ['asks a camera without a login for none', { auth: 'none' }],
  [
    'chooses the challenge that it can meet and reads a list of qualities with spaces',
    {
      auth: 'digest',
      digest_challenge: 'Digest realm="r", qop="auth-int, auth", nonce="abc", algorithm=SHA-256',
    },
  ],
  ['reads a device that is older than GetServices', { hasGetServices: false }],
  ['reads a device that has Media2 only', { services: ['media2', 'ptz', 'events'] }],
  ['takes any prefix for the envelope', { prefix: 'SOAP-ENV' }],
  ['gets along without any service but the device service', { services: [] }],
  ['logs into a camera whose clock is years behind', { auth: 'ws_security', skew_ms: -5e11 }],
] satisfies [string, Partial<FakeCameraSettings>][])('%s', async (_, settings) => {
  const { camera } = await lab.startServed(settings);
  expect(camera.count('GetDeviceInformation')).toBeLessThanOrEqual(3);
});

it('tries a wrong password once with each way to log in, reports it once, and never tries it again', async () => {
  const camera = await lab.start();
  const entry = await lab.entry(camera);
  camera.settings.password = 'another';
  const { log, hub } = lab.run({ cameras: [entry] });
  await eventually('it is said', () => log.at('error').length > 0);
  expect(log.lines.at(-1)?.facts['reason']).toBe(texts.login_rejected('kit', ' (Sender not authorized)'));
  const asked = camera.requests.length;
  await elapse(1_500);
  expect(camera.requests).toHaveLength(asked);
  expect(camera.count('GetDeviceInformation')).toBeLessThanOrEqual(4);
  expect(log.at('error')).toHaveLength(1);
  expect(hub.drivers()[0]?.devices).toMatchObject([{ state: 'rejected' }]);
});

it('takes a camera whose password was changed offline with the reason, and asks no more', async () => {
  const { camera, outbox, log } = await lab.startServed();
  await camera.next('PullMessages');
  camera.settings.password = 'changed';
  await camera.reboot();
  const offline = await outbox.until(isStatus('offline'));
  expect(offline.data?.['reason']).not.toBe('');
  await eventually('it is given up', () => log.at('error').length > 0);
});

it('serves the other cameras while one has no power and one refuses the login', async () => {
  const [good, dead, strange] = [
    await lab.start(),
    await lab.start({ serial: 'B' }),
    await lab.start({ serial: 'C' }),
  ];
  const entries = [await lab.entry(good), await lab.entry(dead), await lab.entry(strange)];
  await dead.stop();
  strange.settings.username = 'other';
  const { outbox, log } = lab.run({ cameras: entries });
  await outbox.until(isStatus('online'));
  await eventually('both are said', () => log.lines.filter(({ level }) => level !== 'info').length >= 2);
  good.events.set('tns1:VideoSource/MotionAlarm', 'State', 'true');
  await outbox.until(said('motion', (data) => data['detected'] === true));
  expect(log.at('warn')).toEqual(['camera is unavailable']);
  expect(log.at('error')).toEqual(['camera cannot be served; retrying rarely']);
});

it('does not serve another camera that answers at the address, and reports what to do', async () => {
  const { camera, outbox, log, hub } = await lab.startServed();
  await camera.lose();
  await outbox.until(isStatus('offline'));
  const { serial, mac } = camera.settings;
  Object.assign(camera.settings, { serial: 'ANOTHER', mac: '00:1b:c5:00:00:99' });
  await camera.restore();
  await eventually('it is said', () => log.at('error').length > 0);
  expect(log.at('error')).toEqual([driverTexts.identity_claimed]);
  expect(log.lines.find(({ level }) => level === 'error')?.facts['reason']).toMatch(
    /give its entry another name/u,
  );
  outbox.clear();
  Object.assign(camera.settings, { serial, mac });
  await outbox.until(isStatus('online'), 30_000);
  expect(hub.assets().map(({ key }) => key)).toEqual(['onvif:acme:007:12345678901234567890']);
});

it('lets no camera take the place of another that is away', async () => {
  const [real, thief] = [await lab.start({ serial: 'REAL-1' }), await lab.start({ serial: 'THIEF-1' })];
  const cameras_options = [await lab.entry(real, { name: 'Gate' }), await lab.entry(thief, { name: 'Yard' })];
  const { outbox, log, hub } = lab.run({ cameras: cameras_options });
  await eventually(
    'both are served',
    () => hub.assets().filter(({ status }) => status === 'online').length === 2,
  );
  await real.lose();
  await thief.lose();
  await eventually('both are away', () => hub.assets().every(({ status }) => status === 'offline'));
  thief.settings.serial = 'REAL-1';
  await thief.restore();
  await eventually('it is said', () => log.at('error').length > 0);
  const facts = log.lines.find(({ level }) => level === 'error')?.facts;
  expect(facts?.['name']).toBe('Yard');
  expect(facts?.['reason']).toMatch(/^it is the same device as "Gate".*check this one for tampering$/u);
  outbox.clear();
  await real.restore();
  await outbox.until(isStatus('online'), 30_000);
  const online = hub.assets().filter(({ status }) => status === 'online');
  expect(online.map(({ key, name }) => [key, name])).toEqual([['onvif:acme:007:real-1', 'Gate']]);
});

it('serves a camera that is configured under two addresses once, and reports which two', async () => {
  const [one, two] = [await lab.start(), await lab.start()];
  const cameras_options = [await lab.entry(one, { name: 'A' }), await lab.entry(two, { name: 'B' })];
  const { log, hub } = lab.run({ cameras: cameras_options });
  await eventually('it is said', () => log.at('warn').length > 0);
  expect(JSON.stringify(log.lines.find(({ level }) => level === 'warn')?.facts['reason'])).toMatch(
    /same device as .{1,3}[AB].{1,3} \(onvif:acme:007:12345678901234567890\), or claims to be; remove one/u,
  );
  await eventually('one is served', () => hub.assets().length === 1);
});

// 12345679890: EYEPLUS (home-assistant/core#63399). 127001: Reolink cameras report their own address without its dots.
it.each([
  '0000000000',
  '0123456789',
  'abcd1234',
  '00000000065536',
  '11111111',
  'SerialNumber',
  '12345679890',
  '127001',
])('takes the MAC address where the serial number is the published default %s', async (serial) => {
  const camera = await lab.start({ serial });
  const { outbox } = lab.run({ cameras: [await lab.entry(camera)] });
  await expect(
    outbox.until(({ data }) => data?.['asset_key'] === 'onvif:mac:001bc5000007'),
  ).resolves.toBeDefined();
});

it('serves two cameras with one serial number where the options give one of them an identity', async () => {
  const [one, two] = [
    await lab.start({ mac: '00:1b:c5:00:00:01' }),
    await lab.start({ mac: '00:1b:c5:00:00:02' }),
  ];
  const { hub } = lab.run({
    cameras: [await lab.entry(one, { name: 'A' }), await lab.entry(two, { name: 'B', identity: 'second' })],
  });
  await eventually('both are served', () => hub.assets().length === 2);
  expect(
    hub
      .assets()
      .map(({ key }) => key)
      .toSorted(),
  ).toEqual(['onvif:acme:007:12345678901234567890', 'onvif:configured:second']);
});

it('keeps the asset of a camera that changes its serial number with each start', async () => {
  const camera = await lab.start({ serial: '6911d3a0' });
  const cameras_options = [await lab.entry(camera)];
  const first = lab.run({ cameras: cameras_options });
  await first.outbox.until(isStatus('online'));
  await first.stop();
  // klaushofrichter/cams on an RLC-1224A.
  camera.settings.serial = '70b2e91c';
  const second = lab.run({ cameras: cameras_options });
  await second.outbox.until(isStatus('online'));
  expect(second.hub.assets().map(({ key }) => key)).toEqual(['onvif:acme:007:6911d3a0']);
  expect(second.log.at('warn')).toEqual([texts.serial_changed]);
});

it('asks for an identity where neither is told, and takes the one that is configured', async () => {
  const camera = await lab.start({ serial: '', mac: '00:00:00:00:00:00' });
  const { log } = lab.run({ cameras: [await lab.entry(camera)] });
  await eventually('it is said', () => log.at('error').length > 0);
  expect(JSON.stringify(log.lines.at(-1)?.facts['reason'])).toMatch(/set identity in the configuration/u);
  const { outbox } = lab.run({ cameras: [await lab.entry(camera, { identity: 'roof-1' })] });
  await outbox.until(({ data }) => data?.['asset_key'] === 'onvif:configured:roof-1');
});

it('reports what to do about a password file that every user may read', async () => {
  const camera = await lab.start();
  const entry = await lab.entry(camera);
  await chmod(String(entry['password_file']), 0o644);
  const { log } = lab.run({ cameras: [entry] });
  await eventually('it is said', () => log.at('error').length > 0);
  expect(JSON.stringify(log.lines.at(-1)?.facts['reason'])).toMatch(/run .{1,2}chmod o=/u);
  expect(camera.requests).toEqual([]);
});

it('uses HTTPS with the certificate with the configured fingerprint, and sends nothing to any other', async () => {
  await withDirectory(async (dir) => {
    const { server } = await makeCertificates(dir, 'kit');
    const [cert, key] = await Promise.all([readFile(server.cert, 'utf8'), readFile(server.key, 'utf8')]);
    const camera = await lab.start({ serial: 'TLS' }, { cert, key });
    const wrong = lab.run({ cameras: [await lab.entry(camera, { tls: { fingerprint: '00'.repeat(32) } })] });
    const unknown = lab.run({ cameras: [await lab.entry(camera, { tls: {} })] });
    await eventually('both are refused', () =>
      [wrong, unknown].every(({ log }) => log.at('error').length === 1),
    );
    expect(JSON.stringify(wrong.log.lines.at(-1)?.facts['reason'])).toMatch(
      /not the one in tls\.fingerprint/u,
    );
    expect(JSON.stringify(unknown.log.lines.at(-1)?.facts['reason'])).toMatch(
      /write its SHA-256 to tls\.fingerprint/u,
    );
    expect(camera.requests).toEqual([]);
    const fingerprint = new X509Certificate(cert).fingerprint256;
    const { outbox } = lab.run({ cameras: [await lab.entry(camera, { tls: { fingerprint } })] });
    await outbox.until(isStatus('online'));
    await eventually('it is pulled', () => camera.count('PullMessages') > 0);
    camera.events.set('tns1:VideoSource/MotionAlarm', 'State', 'true');
    await outbox.until(said('motion', (data) => data['detected'] === true));
  });
});

it('reads the certificates of authorities for no camera whose fingerprint is known, and shares what that takes', () => {
  const contextOf = (fingerprint: string | undefined): unknown => {
    const agent = agentFor({ secure: true, fingerprint });
    return agent instanceof Agent && agent.options.secureContext;
  };
  expect(contextOf('ab')).toBeDefined();
  expect(contextOf('ab')).toBe(contextOf('cd'));
  expect(contextOf(undefined)).toBeUndefined();
});

it('refuses options that contradict each other, and names them', () => {
  const camera = { name: 'a', host: '10.0.0.1' };
  const refuse = (cameras_options: readonly object[], why: RegExp): void =>
    expect(() => onvif.configure({ cameras: cameras_options })).toThrow(why);
  refuse([camera, { ...camera, name: 'b' }], /has the name or the address of cameras\[0\]/u);
  refuse([{ ...camera, username: 'u' }], /username and password_file belong together/u);
  refuse([{ ...camera, host: 'http://10.0.0.1/' }], /without a scheme/u);
  refuse([{ ...camera, tls: { fingerprint: 'xyz' } }], /64 hexadecimal digits/u);
});
