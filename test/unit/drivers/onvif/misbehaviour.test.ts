/** Cameras that misbehave: cut or dripping replies, refused calls, jumping clocks, foreign addresses. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openLine } from '../../../../drivers/onvif/soap/line.ts';
import { operation, reachable, type Soap } from '../../../../drivers/onvif/soap/soap.ts';
import { type FakeCamera } from '../../../fakes/fake-onvif-camera.ts';
import { elapse } from '../../../support/elapse.ts';
import { eventually } from '../../../support/eventually.ts';
import { isStatus, labOfEachTest, said } from '../../../support/cameras/onvif-lab.ts';

const lab = labOfEachTest();
let stopping: AbortController;
beforeEach(async () => {
  stopping = new AbortController();
});
afterEach(async () => {
  stopping.abort();
});

function lineTo(camera: FakeCamera): Soap {
  const { username, password } = camera.settings;
  const where = { host: '127.0.0.1', port: camera.port, path: '/onvif/device_service', secure: false };
  return openLine({ ...where, fingerprint: undefined, username, password }, stopping.signal);
}

const information = operation('device', 'GetDeviceInformation');
const motionOn = said('motion', (data) => data['detected'] === true);
const motionOff = said('motion', (data) => data['detected'] === false);

it('a reply that is cut off in the middle is a failure at once, and its events go on after it', async () => {
  const camera = await lab.start();
  const line = lineTo(camera);
  camera.misbehave('GetDeviceInformation', 'abort');
  expect(await line.call(information)).toMatchObject({ kind: 'failure', why: 'unreachable' });
  camera.misbehave('GetDeviceInformation', 'normal');
  let pulls = 0;
  camera.misbehave('PullMessages', () => (++pulls === 2 ? 'abort' : 'normal'));
  const { outbox } = await lab.serve(camera);
  camera.events.set('tns1:VideoSource/MotionAlarm', 'State', 'true');
  await outbox.until(motionOn);
  await eventually('it pulls again', () => pulls > 2);
  camera.events.set('tns1:VideoSource/MotionAlarm', 'State', 'false');
  await outbox.until(motionOff);
});

it('a subscription that is refused is asked for again', async () => {
  const camera = await lab.start();
  let asked = 0;
  camera.misbehave('CreatePullPointSubscription', () => (++asked <= 3 ? { fault: 'ter:Busy' } : 'normal'));
  const { outbox } = await lab.serve(camera);
  await camera.next('PullMessages');
  camera.events.set('tns1:VideoSource/MotionAlarm', 'State', 'true');
  await expect(outbox.until(motionOn)).resolves.toBeDefined();
});

it('pulls that are always refused do not become a storm', async () => {
  const camera = await lab.start();
  camera.misbehave('PullMessages', { fault: 'ter:InvalidArgVal' });
  const { outbox } = lab.run({ cameras: [await lab.entry(camera, { events: 'pull' })] });
  await outbox.until(isStatus('online'));
  await elapse(2_000);
  expect(camera.count('PullMessages')).toBeLessThanOrEqual(4);
});

it('a camera that ignores the waiting time is pulled once a second, and not renewed each time', async () => {
  const camera = await lab.start();
  camera.events.isHasty = true;
  await lab.serve(camera);
  await elapse(2_000);
  expect(camera.count('PullMessages')).toBeLessThanOrEqual(4);
  expect(camera.count('Renew')).toBe(0);
});

it('a camera that repeats the same event without end is asked less and less often', async () => {
  const camera = await lab.start();
  const same =
    '<PullMessagesResponse><NotificationMessage><Topic>tns1:VideoSource/MotionAlarm</Topic><Message><Message><Data><SimpleItem Name="State" Value="true"/></Data></Message></Message></NotificationMessage></PullMessagesResponse>';
  camera.misbehave('PullMessages', { body: same });
  const { outbox } = lab.run({ cameras: [await lab.entry(camera)] });
  await outbox.until(motionOn);
  await elapse(2_000);
  expect(camera.count('PullMessages')).toBeLessThanOrEqual(8);
  expect(outbox.drafts.filter(said('motion'))).toHaveLength(1);
});

it('there is one event loop, also after its subscription was lost several times', async () => {
  const { camera } = await lab.startServed();
  for (let round = 0; round < 2; round += 1) {
    await eventually('it pulls', () => camera.events.size === 1);
    const again = camera.next('CreatePullPointSubscription');
    camera.events.forgetAll();
    await again;
  }
  await eventually('it pulls', () => camera.events.size === 1);
  const before = camera.count('PullMessages');
  await elapse(1_000);
  expect(camera.count('PullMessages') - before).toBeLessThanOrEqual(2);
  expect(camera.events.size).toBe(1);
});

it('a user name with signs of XML logs in and injects nothing', async () => {
  const camera = await lab.start({ username: 'a&b</Username><Evil/>"', auth: 'ws_security' });
  expect(await lineTo(camera).call(information)).toMatchObject({ kind: 'reply' });
  expect(camera.requests.some(({ body }) => body.includes('<Evil/>'))).toBe(false);
});

it('a clock that jumps costs no login', async () => {
  const camera = await lab.start({ auth: 'ws_security' });
  const line = lineTo(camera);
  expect(await line.call(information)).toMatchObject({ kind: 'reply' });
  camera.settings.skew_ms = 3_600_000;
  expect(await line.call(information)).toMatchObject({ kind: 'reply' });
});

it.each([
  ['with an offset', (at: Date) => at.toISOString().replace('Z', '+00:00')],
  ['without a zone', (at: Date) => at.toISOString().replace('Z', '')],
  ['as nonsense', () => 'soon'],
])('times %s do not end the events', async (_, spell) => {
  const camera = await lab.start();
  camera.events.spellTime = spell;
  const { outbox } = await lab.serve(camera);
  await camera.next('PullMessages');
  camera.events.set('tns1:VideoSource/MotionAlarm', 'State', 'true');
  await expect(outbox.until(motionOn)).resolves.toBeDefined();
});

it('the login is never sent to a foreign host that the camera names', async () => {
  const camera = await lab.start();
  camera.events.foreign_base = 'http://127.0.0.2:9';
  const { outbox } = await lab.serve(camera);
  await camera.next('PullMessages');
  camera.events.set('tns1:VideoSource/MotionAlarm', 'State', 'true');
  await outbox.until(motionOn);
  const connection = {
    host: '10.0.0.1',
    port: 80,
    path: '/',
    secure: true,
    fingerprint: undefined,
    username: 'u',
    password: 'p',
  };
  expect(reachable('http://10.0.0.1:8000/a?b=1', connection)).toBe('https://10.0.0.1:80/a?b=1');
  expect(reachable('https://10.0.0.1:8443/a', connection)).toBe('https://10.0.0.1:8443/a');
  expect(reachable('http://evil.example@10.0.0.9/a', connection)).toBe('https://10.0.0.1:80/a');
});

it('a reply that drips ends at the deadline of the call', async () => {
  const camera = await lab.start();
  camera.misbehave('GetDeviceInformation', 'drip');
  expect(await lineTo(camera).call({ ...information, deadline_ms: 400 })).toMatchObject({
    kind: 'failure',
    why: 'deadline',
  });
});

it.each([
  ['changes the protocol', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'],
  ['only ever promises to go on', 'HTTP/1.1 100 Continue\r\n\r\n'],
  ['speaks no HTTP', 'garbage\r\n\r\n'],
])('a call to what %s ends at its deadline at the latest', async (_, said) => {
  const strange = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => socket.write(said.repeat(100)));
  }).listen(0, '127.0.0.1');
  await once(strange, 'listening');
  const address = strange.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const where = { host: '127.0.0.1', port, path: '/', secure: false, fingerprint: undefined };
  const line = openLine({ ...where, username: undefined, password: undefined }, stopping.signal);
  const outcome = await line.call({ ...information, deadline_ms: 300 });
  expect(outcome.kind === 'failure' && outcome.why).toMatch(/^(?:deadline|unreachable)$/u);
  strange.close();
});

it('a call for a camera that was let go is answered like any other', async () => {
  const camera = await lab.start();
  const line = lineTo(camera);
  camera.misbehave('GetDeviceInformation', 'hang');
  const asked = line.call(information);
  line.close();
  expect(await asked).toMatchObject({ kind: 'failure', why: 'interrupted' });
  expect(await line.call(information)).toMatchObject({ kind: 'failure', why: 'interrupted' });
});
