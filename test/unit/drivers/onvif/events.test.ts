/** Motion from camera to hub: at once, by pull and by webhook, and never longer than it is true. */
import { request } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import { texts } from '../../../../drivers/onvif/texts.ts';
import { expect, it, vi } from 'vitest';
import { Detections, Detectors, type Edge } from '../../../../drivers/onvif/events/detections.ts';
import { Webhook } from '../../../../drivers/onvif/events/webhook.ts';
import { answer_chars_max, referenceParameters } from '../../../../drivers/onvif/events/subscription.ts';
import { type FakeCameraSettings } from '../../../fakes/fake-onvif-camera.ts';
import { threadCpu_ms } from '../../../fuzz/engine.ts';
import { elapse } from '../../../support/elapse.ts';
import { eventually } from '../../../support/eventually.ts';
import { isStatus, labOfEachTest, said } from '../../../support/cameras/onvif-lab.ts';

const lab = labOfEachTest();

async function serve(settings: Partial<FakeCameraSettings> = {}, more: object = {}, options: object = {}) {
  const camera = await lab.start(settings);
  const prepare = async () => lab.run({ cameras: [await lab.entry(camera, more)], ...options });
  return { camera, prepare };
}

const alarm = 'tns1:VideoSource/MotionAlarm';
const types: readonly string[] = [];
const { signal } = new AbortController();
const motion = (detected: boolean) => said('motion', (data) => data['detected'] === detected);

it('reports each edge once, whatever many detectors report between', async () => {
  const { camera, prepare } = await serve();
  const { outbox } = await prepare();
  await camera.next('PullMessages');
  camera.events.set(alarm, 'State', 'true', 'left');
  camera.events.set('tns1:RuleEngine/CellMotionDetector/Motion', 'IsMotion', '1');
  camera.events.set(alarm, 'State', 'true', 'right');
  await outbox.until(motion(true));
  camera.events.set(alarm, 'State', 'false', 'left');
  camera.events.set('tns1:RuleEngine/CellMotionDetector/Motion', 'IsMotion', '0');
  await elapse(300);
  expect(outbox.drafts.filter(motion(false))).toEqual([]);
  camera.events.set(alarm, 'State', 'false', 'right');
  await outbox.until(motion(false));
  expect(outbox.drafts.filter(said('motion'))).toHaveLength(2);
});

it('publishes tampering and a doorbell as separate events', async () => {
  const { camera, prepare } = await serve();
  const { outbox } = await prepare();
  await camera.next('PullMessages');
  camera.events.set('tns1:RuleEngine/TamperDetector/Tamper', 'IsTamper', 'true');
  camera.events.set('tns1:RuleEngine/MyRuleDetector/Visitor', 'State', 'true');
  for (const feed of ['tamper', 'doorbell'])
    await outbox.until(said(feed, (data) => data['detected'] === true));
  camera.events.set('tns1:RuleEngine/MyRuleDetector/Visitor', 'State', 'false');
  await outbox.until(said('doorbell', (data) => data['detected'] === false));
  expect(outbox.drafts.filter(said('motion'))).toEqual([]);
});

it('publishes kinds, inputs, sounds, faults of the picture and of the storage', async () => {
  const { camera, prepare } = await serve();
  const { outbox } = await prepare();
  await camera.next('PullMessages');
  const on = (feed: string, more: object = {}) =>
    outbox.until(said(feed, (data) => matches(data, { detected: true, ...more })));
  camera.events.set('tns1:RuleEngine/MyRuleDetector/PeopleDetect', 'State', 'true');
  await outbox.until(motion(true));
  await on('ai_detection', { types: ['people'] });
  camera.events.set('tns1:RuleEngine/LineCrossDetector/LineCross', 'IsLineCross', 'true');
  await on('ai_detection', { types: ['people', 'line_crossing'] });
  camera.events.set('tns1:RuleEngine/LineCrossDetector/LineCross', 'IsLineCross', 'false');
  camera.events.set('tns1:RuleEngine/MyRuleDetector/PeopleDetect', 'State', 'false');
  await outbox.until(said('ai_detection', (data) => matches(data, { detected: false, types: [] })));
  await outbox.until(motion(false));
  camera.events.set('tns1:Device/Trigger/DigitalInput', 'LogicalState', 'true', 'door');
  await on('digital_input', { inputs: ['door'] });
  camera.events.set('tns1:AudioAnalytics/Audio/DetectedSound', 'isSoundDetected', 'true');
  await on('sound');
  camera.events.set('tns1:VideoSource/SignalLoss', 'State', 'true');
  await on('picture_fault', { types: ['signal_loss'] });
  camera.events.set('tns1:Device/HardwareFailure/StorageFailure', 'Failed', 'true');
  await expect(on('storage_fault')).resolves.toBeDefined();
});

const matches = (data: Readonly<Record<string, unknown>>, wanted: object): boolean =>
  Object.entries(wanted).every(([name, value]) => isDeepStrictEqual(data[name], value));

it('shows topics without a meaning, and reads them as soon as the configuration gives them one', async () => {
  const topic = 'tns1:RuleEngine/tnsacme:Drone/Seen';
  const first = await serve();
  const running = await first.prepare();
  await first.camera.next('PullMessages');
  first.camera.events.set(topic, 'Visible', 'true');
  const fact = (): unknown => running.hub.drivers()[0]?.facts['events_not_read'];
  await eventually('it is shown', () => String(fact()).includes(topic));
  expect(fact()).toMatch(/ \(1\); where one is an alarm, add it to the options: events: \[\{ topic: "tns1:/u);
  const events = [{ topic: 'drone/seen', feed: 'ai_detection', type: 'vehicle', inverted: true }];
  const { camera, prepare } = await serve({}, {}, { events });
  const { outbox } = await prepare();
  await camera.next('PullMessages');
  camera.events.set(topic, 'Visible', 'false');
  const seen = await outbox.until(said('ai_detection'));
  expect(seen.data).toMatchObject({ detected: true, types: ['vehicle'] });
});

it('keeps the state of an input, a picture and a disk until the camera reports its end', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const edges: unknown[] = [];
    const one = new Detections({
      hold_max_ms: 60_000,
      signal,
      edge: (feed, { detected, reason }) => edges.push([feed, detected, reason]),
    });
    const about = { key: 'a', types } as const;
    one.take([
      { detection: 'digital_input', state: 'active', ...about },
      { detection: 'storage_fault', state: 'pulse', ...about },
      { detection: 'sound', state: 'active', ...about },
    ]);
    await vi.advanceTimersByTimeAsync(600_000);
    one.take([{ detection: 'digital_input', state: 'idle', ...about }]);
    expect(edges).toEqual([
      ['sound', true, undefined],
      ['digital_input', true, undefined],
      ['storage_fault', true, undefined],
      ['storage_fault', false, texts.no_further_event],
      ['sound', false, texts.not_confirmed(60)],
      ['digital_input', false, undefined],
    ]);
  } finally {
    vi.useRealTimers();
  }
});

it('reports once that only the event service restarts, and receives motion soon after', async () => {
  const { camera, prepare } = await serve();
  const { outbox, log } = await prepare();
  await camera.next('PullMessages');
  const refuse = { fault: 'ter:ActionFailed' } as const;
  camera.misbehave('CreatePullPointSubscription', refuse);
  camera.events.forgetAll();
  for (let count = 0; count < 3; count += 1) await camera.next('CreatePullPointSubscription');
  camera.misbehave('CreatePullPointSubscription', 'normal');
  camera.events.set(alarm, 'State', 'true');
  await outbox.until(motion(true));
  expect(log.at('info').filter((sentence) => sentence === texts.events_lost)).toHaveLength(1);
});

it('asks for the state when it subscribes, so that motion that began before is known', async () => {
  const { camera, prepare } = await serve();
  camera.events.set(alarm, 'State', 'true');
  const { outbox } = await prepare();
  await expect(outbox.until(motion(true))).resolves.toBeDefined();
});

it('takes motion back with a reason when the subscription is lost', async () => {
  const { camera, prepare } = await serve();
  const { outbox } = await prepare();
  await camera.next('PullMessages');
  camera.events.set(alarm, 'State', 'true');
  await outbox.until(motion(true));
  camera.events.forgetAll();
  const off = await outbox.until(motion(false));
  expect(JSON.stringify(off.data)).toMatch(/event subscription lost/u);
});

it('asks before it takes back motion that lasts, and keeps what the camera confirms', async () => {
  const { camera, prepare } = await serve({}, {}, { motion_hold_max_s: 1 });
  const { outbox } = await prepare();
  await camera.next('PullMessages');
  camera.events.set(alarm, 'State', 'true');
  await outbox.until(motion(true));
  await camera.next('SetSynchronizationPoint');
  await camera.next('SetSynchronizationPoint');
  expect(outbox.drafts.filter(motion(false))).toEqual([]);
  camera.misbehave('SetSynchronizationPoint', { fault: 'ter:ActionNotSupported' });
  const off = await outbox.until(motion(false));
  expect(off.data?.['reason']).toBe('not confirmed by the camera for 1 s');
});

it('takes back motion that lasts although pulls end empty and other detectors report that they are idle', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const edges: unknown[] = [];
    let asked = 0;
    const edge = ({ detected, reason }: Edge): void => void edges.push([detected, reason]);
    const one = new Detectors({ hold_max_ms: 60_000, signal, lasts: false, edge });
    one.confirmWith(async () => {
      asked += 1;
    });
    one.take([{ key: 'yard', state: 'active', types }]);
    for (let pulls = 0; pulls < 4; pulls += 1) {
      await vi.advanceTimersByTimeAsync(20_000);
      one.take([]);
      one.take([{ key: 'gate', state: 'idle', types }]);
    }
    expect(asked).toBe(1);
    expect(edges).toEqual([
      [true, undefined],
      [false, texts.not_confirmed(60)],
    ]);
  } finally {
    vi.useRealTimers();
  }
});

it('reports both edges of what begins and ends within one answer, and ends its timers with the signal', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const edges: unknown[] = [];
    const stopping = new AbortController();
    const edge = ({ detected }: Edge): void => void edges.push(detected);
    const one = new Detectors({ hold_max_ms: 60_000, signal: stopping.signal, lasts: false, edge });
    one.take([
      { key: 'yard', state: 'active', types },
      { key: 'yard', state: 'idle', types },
      { key: 'yard', state: 'active', types },
    ]);
    expect(edges).toEqual([true, false, true]);
    expect(vi.getTimerCount()).toBe(1);
    stopping.abort();
    await vi.advanceTimersByTimeAsync(0);
    expect(vi.getTimerCount()).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});

it('ends a crossed line by itself', () => {
  const edges: unknown[] = [];
  const one = new Detectors({
    hold_max_ms: 60_000,
    signal,
    lasts: false,
    edge: ({ detected }) => edges.push(detected),
  });
  one.take([{ key: 'line', state: 'pulse', types }]);
  one.take([{ key: 'line', state: 'pulse', types }]);
  one.forget('test');
  one.forget('test');
  expect(edges).toEqual([true, false]);
});

it('keeps the newest of endlessly many detectors', () => {
  const edges: unknown[] = [];
  const one = new Detectors({
    hold_max_ms: 60_000,
    signal,
    lasts: false,
    edge: ({ detected }) => edges.push(detected),
  });
  one.take(
    Array.from({ length: 1_000 }, (_, key) => ({ key: String(key), state: 'active' as const, types })),
  );
  one.take(
    Array.from({ length: 256 }, (_, key) => ({ key: String(744 + key), state: 'idle' as const, types })),
  );
  expect(edges).toEqual([true, false]);
});

it('lets a camera call that cannot be pulled', async () => {
  const { camera, prepare } = await serve({}, {}, { webhook: { listen: '127.0.0.1' } });
  camera.misbehave('CreatePullPointSubscription', { fault: 'ter:ActionNotSupported' });
  const { outbox } = await prepare();
  await camera.next('SetSynchronizationPoint');
  camera.events.set(alarm, 'State', 'true');
  await expect(outbox.until(motion(true))).resolves.toBeDefined();
});

it('unsubscribes when it stops, in either way', async () => {
  for (const events of ['pull', 'webhook'] as const) {
    const { camera, prepare } = await serve({}, { events }, { webhook: { listen: '127.0.0.1' } });
    const running = await prepare();
    await eventually('it is subscribed', () => camera.count('SetSynchronizationPoint') === 1);
    expect(camera.events.size).toBe(1);
    await running.stop();
    expect(camera.events.size).toBe(0);
  }
});

it.each([
  ['absolute times where seconds are refused', /PT\d+S/u, /^20\d\d-/u],
  ['no time where both are refused', /InitialTerminationTime/u, /^none$/u],
])('subscribes with %s', async (_, refused, expected) => {
  const { camera, prepare } = await serve({ skew_ms: -8e10 });
  const fault = 'wsnt:UnacceptableInitialTerminationTimeFault';
  camera.misbehave('CreatePullPointSubscription', () =>
    refused.test(camera.requests.at(-1)?.body ?? '') ? { fault } : 'normal',
  );
  await prepare();
  await camera.next('PullMessages');
  const made = camera.requests.findLast(({ operation }) => operation === 'CreatePullPointSubscription');
  const time = /TerminationTime>([^<]*)</u.exec(made?.body ?? '')?.[1] ?? 'none';
  expect(time).toMatch(expected);
  // Of the camera's clock, which is years behind.
  const ahead_s = (Date.parse(time) - Date.now() + 8e10) / 1_000;
  expect(time === 'none' || Math.abs(ahead_s - 180) < 10).toBe(true);
});

it('serves a camera that drops every connection for events, and asks it seldom', async () => {
  const { camera, prepare } = await serve({}, { events: 'pull' });
  camera.misbehave('CreatePullPointSubscription', 'abort');
  const { outbox, log } = await prepare();
  await outbox.until(isStatus('online'));
  await eventually('it gives up', () => log.at('warn').includes(texts.events_unavailable));
  expect(camera.count('CreatePullPointSubscription')).toBeLessThanOrEqual(3);
  expect(outbox.drafts.filter(said('asset_status', (data) => data['status'] === 'offline'))).toEqual([]);
});

it('keeps a camera online whose events cannot be received because the port is taken', async () => {
  const taken = new Webhook({ listen: '127.0.0.1', port: 0 });
  const hook = await taken.open(async () => undefined);
  const port = Number(new URL(typeof hook === 'string' ? 'http://none' : hook.url('127.0.0.1')).port);
  const { prepare } = await serve({}, { events: 'webhook' }, { webhook: { listen: '127.0.0.1', port } });
  const { outbox, log } = await prepare();
  await outbox.until(isStatus('online'));
  await eventually('it is said', () => log.at('warn').length > 0);
  expect(JSON.stringify(log.lines.at(-1)?.facts)).toMatch(
    /cannot listen on webhook.listen and webhook\.port: .*EADDRINUSE/u,
  );
  await taken.stop();
});

it('pulls for shorter when the first pull of a subscription is refused', async () => {
  const { camera, prepare } = await serve({}, {}, { pull_s: 30 });
  camera.misbehave('PullMessages', () =>
    camera.requests.at(-1)?.body.includes('PT30S') ? { fault: 'ter:InvalidArgVal' } : 'normal',
  );
  const { outbox } = await prepare();
  await eventually('it pulls again', () => camera.requests.some(({ body }) => body.includes('PT5S')));
  camera.events.set(alarm, 'State', 'true');
  await expect(outbox.until(motion(true))).resolves.toBeDefined();
});

it('gives reference parameters back in their namespace', () => {
  const xml =
    "<E xmlns:x='urn:x' xmlns=\"urn:d\"><a:ReferenceParameters><x:Id>1</x:Id><Other b='2'/></a:ReferenceParameters></E>";
  const headers = referenceParameters(xml);
  expect(headers).toMatch(/<x:Id [^>]*xmlns:x="urn:x"[^>]*kit:IsReferenceParameter="true"[^>]*>1<\/x:Id>/u);
  expect(headers).toMatch(/<Other b='2'[^>]*xmlns="urn:d"[^>]*\/>$/u);
  expect(referenceParameters('<a/>')).toBe('');
});

it('leaves out reference parameters that do not fit a header, after the first of a thousand', () => {
  const names = Array.from({ length: 2_000 }, (_, at) => ` xmlns:a${at.toString(36)}="b"`).join('');
  const xml = `<E${names}><a:ReferenceParameters>${'<a/>'.repeat(900)}</a:ReferenceParameters></E>`;
  expect(xml.length).toBeLessThan(answer_chars_max);
  const costs_ms = [1, 2, 3].map(() => {
    const began_ms = threadCpu_ms();
    expect(referenceParameters(xml)).toBe('');
    return threadCpu_ms() - began_ms;
  });
  // 200 ms when all of them were made first.
  expect(Math.min(...costs_ms)).toBeLessThan(100);
});

async function post(to: string, body: string, method = 'POST'): Promise<number> {
  return new Promise((resolve) => {
    const sent = request(to, { method, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    sent.on('error', () => resolve(0));
    sent.end(body);
  });
}

it('takes what one camera brings one after the other, and refuses more than may wait', async () => {
  const webhook = new Webhook({ listen: '127.0.0.1', port: 0 });
  const free = Promise.withResolvers<void>();
  let [taken, at_once] = [0, 0];
  const hook = await webhook.open(async () => {
    at_once += 1;
    expect(at_once).toBe(1);
    await free.promise;
    at_once -= 1;
    taken += 1;
  });
  if (typeof hook === 'string') throw new Error(hook);
  const url = hook.url('127.0.0.1');
  const answers: number[] = [];
  for (let index = 0; index < 33; index += 1) answers.push(await post(url, '<a/>'));
  expect(answers).toEqual([...Array.from({ length: 32 }, () => 200), 404]);
  free.resolve();
  await eventually('all are taken', () => taken === 32);
  hook.close();
  await webhook.stop();
});

it('answers nothing but its secret paths, and takes no more than it can read', async () => {
  const webhook = new Webhook({ listen: '127.0.0.1', port: 0 });
  const taken: string[] = [];
  const hook = await webhook.open(async (xml) => void taken.push(xml));
  if (typeof hook === 'string') throw new Error(hook);
  const url = hook.url('::ffff:127.0.0.1');
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]{32}$/u);
  expect(await post(url, '<a/>')).toBe(200);
  expect(await post(new URL('/', url).href, '<b/>')).toBe(404);
  expect(await post(url, '<c/>', 'PUT')).toBe(404);
  expect([0, 404]).toContain(await post(url, 'x'.repeat(300_000)));
  hook.close();
  expect(await post(url, '<d/>')).toBe(404);
  expect(taken).toEqual(['<a/>']);
  await webhook.stop();
});
