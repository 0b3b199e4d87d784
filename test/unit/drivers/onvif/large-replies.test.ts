/** Replies that are read here, and large ones that are read in a thread that comes and goes. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { readEnvelope } from '../../../../drivers/onvif/soap/envelope.ts';
import { LargeReplies } from '../../../../drivers/onvif/soap/large-replies.ts';
import { openLine, small_chars_max } from '../../../../drivers/onvif/soap/line.ts';
import { envelope } from '../../../../drivers/onvif/sim/services.ts';
import { expectReply, operation, type Soap, StalledCamera } from '../../../../drivers/onvif/soap/soap.ts';
import { type FakeCamera, startFakeCamera } from '../../../fakes/fake-onvif-camera.ts';
import { eventually } from '../../../support/eventually.ts';
import { recordingLog } from '../../../support/recording-log.ts';
import { withDirectory } from '../../../support/temporary.ts';
import { texts } from '../../../../drivers/onvif/texts.ts';

const cameras: FakeCamera[] = [];
const forever = new AbortController().signal;
let stopping: AbortController;
let log: ReturnType<typeof recordingLog>;
beforeEach(() => {
  stopping = new AbortController();
  log = recordingLog();
});
const open: LargeReplies[] = [];
afterEach(async () => {
  stopping.abort();
  for (const each of open.splice(0)) await each.ended();
  for (const camera of cameras.splice(0)) await camera.stop();
});

function reader(more: { readonly script?: URL; readonly idle_ms?: number } = {}): LargeReplies {
  const large = new LargeReplies({ log, signal: stopping.signal, ...more });
  open.push(large);
  return large;
}

/** Reads with a thread that stalls when a reply says "stall" and uses up its memory when it says "devour". */
function badReader(): LargeReplies {
  return reader({ script: new URL('../../../support/cameras/stalling-reply-process.ts', import.meta.url) });
}

async function lineTo(
  large: Pick<LargeReplies, 'read'>,
): Promise<{ readonly camera: FakeCamera; readonly line: Soap }> {
  const camera = await startFakeCamera({ auth: 'none' });
  cameras.push(camera);
  const where = { host: '127.0.0.1', port: camera.port, path: '/onvif/device_service', secure: false };
  const login = { fingerprint: undefined, username: undefined, password: undefined };
  return { camera, line: openLine({ ...where, ...login }, large, stopping.signal) };
}

/** A thread that reads whatever comes. */
const answering = `
  parentPort.on('message', (text) => parentPort.postMessage({ kind: 'read', body: { text } }));
  parentPort.postMessage('ready');`;

const services = operation('device', 'GetServices');
const information = operation('device', 'GetDeviceInformation');
const many = '<Service><Namespace>urn:a</Namespace></Service>'.repeat(1_500);
const body = `<GetServicesResponse>${many}</GetServicesResponse>`;

it('starts a thread for a large reply and none for a small one, and reads the same in both', async () => {
  const large = reader();
  const { camera, line } = await lineTo(large);
  expect(await line.call(services)).toMatchObject({ kind: 'reply' });
  expect(large.starts).toBe(0);
  camera.misbehave('GetServices', { body });
  const xml = envelope(body, 's');
  expect(xml.length).toBeGreaterThan(small_chars_max);
  const here = readEnvelope(xml);
  expect(here.kind).toBe('read');
  const outcome = await line.call(services);
  expect(outcome.kind === 'reply' && { kind: 'read', body: outcome.body }).toEqual(here);
  expect(await line.parse(xml)).toEqual(here);
  expect(large.starts).toBe(1);
});

it('refuses in the thread what it refuses here', async () => {
  const large = reader();
  const { camera, line } = await lineTo(large);
  for (const raw of [
    `<a ${'xmlns'.repeat(20_000)}/>`,
    envelope('<a>'.repeat(20_000), 's'),
    `<html>${'x'.repeat(60_000)}</html>`,
  ]) {
    camera.misbehave('GetServices', { raw });
    expect(await line.call(services)).toEqual(readEnvelope(raw));
  }
  camera.misbehave('GetServices', { raw: `<html>${'x'.repeat(60_000)}</html>`, status: 503 });
  expect(await line.call(services)).toMatchObject({ kind: 'fault', code: 'HTTP503' });
  expect(large.stalls).toBe(0);
});

it('names the first details of a fault that has thousands', async () => {
  const { camera, line } = await lineTo(reader());
  const details = Array.from({ length: 5_000 }, (_, at) => `<d>d${at}.</d>`).join('');
  const fault = `<s:Fault><s:Code><s:Value>s:Sender</s:Value></s:Code><s:Reason><s:Text>${'r'.repeat(400_000)}</s:Text></s:Reason><s:Detail>${details}</s:Detail></s:Fault>`;
  camera.misbehave('GetServices', { raw: envelope(fault, 's') });
  expect(await line.call(services)).toMatchObject({ kind: 'fault', reason: 'r'.repeat(300) });
  camera.misbehave('GetServices', { raw: envelope(fault.replace(/r{2,}/u, 'refused'), 's') });
  const outcome = await line.call(services);
  const reason = outcome.kind === 'fault' ? outcome.reason : '';
  expect(reason).toMatch(/^refused: d0\., d1\., .*d15\.$/u);
});

it('ends the thread when no large reply comes any more, and starts another for the next', async () => {
  const large = reader({ idle_ms: 30 });
  const xml = envelope(body, 's');
  expect(await large.read(xml, forever)).toMatchObject({ kind: 'read' });
  await eventually('the thread has ended', () => large.state === 'absent');
  await large.ended();
  expect(await large.read(xml, forever)).toMatchObject({ kind: 'read' });
  expect(large.starts).toBe(2);
  expect(log.lines).toEqual([]);
});

it('waits for a thread that starts slowly, longer than any call, and keeps it the longer for the next reply', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'performance'] });
  try {
    await withDirectory(async (dir) => {
      const file = join(dir, 'thread.mjs');
      await writeFile(file, `import { parentPort } from 'node:worker_threads';${answering}`);
      const large = reader({ script: pathToFileURL(file) });
      const call = new AbortController();
      const late = large.read('late', call.signal);
      // The processor gives the thread no time meanwhile.
      vi.advanceTimersByTime(8_000);
      call.abort();
      expect(await late).toMatchObject({ why: 'interrupted' });
      vi.advanceTimersByTime(12_000);
      expect(large.state).toBe('starting');
      await vi.waitFor(() => expect(large.state).toBe('idle'), { timeout: 60_000 });
      vi.advanceTimersByTime(150_000);
      expect(await large.read('next', forever)).toMatchObject({ kind: 'read' });
      expect([large.starts, log.lines]).toEqual([1, []]);
    });
  } finally {
    vi.useRealTimers();
  }
});

/** A thread that reads each reply for a third of a second without the processor. */
const starved = `
  parentPort.on('message', (text) => {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
    parentPort.postMessage({ kind: 'read', body: { text } });
  });
  parentPort.postMessage('ready');`;

it.each([
  [15_000, { kind: 'read' }, 0],
  [25_000, { kind: 'failure', why: 'stalled' }, 1],
] as const)(
  'judges a thread by the processor time that it had: after %d ms without any %o',
  async (passed_ms, outcome, stalls) => {
    await withDirectory(async (dir) => {
      const file = join(dir, 'thread.mjs');
      await writeFile(file, `import { parentPort } from 'node:worker_threads';${starved}`);
      const large = reader({ script: pathToFileURL(file) });
      expect(await large.read('first', forever)).toMatchObject({ kind: 'read' });
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
      try {
        const reading = large.read('second', forever);
        vi.advanceTimersByTime(passed_ms);
        expect(await reading).toMatchObject(outcome);
        expect(large.stalls).toBe(stalls);
      } finally {
        vi.useRealTimers();
      }
    });
  },
);

it('leaves the other cameras alone while the large reply of one stalls the thread, small and large replies alike', async () => {
  const large = badReader();
  const [hostile, good] = [await lineTo(large), await lineTo(large)];
  hostile.camera.misbehave('GetServices', { raw: `stall${' '.repeat(small_chars_max)}` });
  good.camera.misbehave('GetServices', { raw: `fine${' '.repeat(small_chars_max)}` });
  const guilty = hostile.line.call(services);
  await eventually('it is being read', () => large.state === 'reading');
  const innocent = good.line.call(services);
  expect(await good.line.call(information)).toMatchObject({ kind: 'reply' });
  expect(await hostile.line.call(information)).toMatchObject({ kind: 'reply' });
  const outcome = await guilty;
  expect(outcome).toMatchObject({ kind: 'failure', why: 'stalled' });
  expect(() => expectReply(outcome, 'GetServices')).toThrow(StalledCamera);
  expect(await innocent).toMatchObject({ kind: 'reply', body: { text: 'fine' } });
  expect(large.stalls).toBe(1);
});

/** A thread that reads no reply until a file beside it exists, without the processor. */
const held = `
  parentPort.on('message', (text) => {
    while (!existsSync(new URL('./go', import.meta.url))) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
    parentPort.postMessage({ kind: 'read', body: { text, attributes: {}, children: {} } });
  });
  parentPort.postMessage('ready');`;

it('gives a reply behind a slow one longer to be read than a camera to answer', async () => {
  await withDirectory(async (dir) => {
    const file = join(dir, 'thread.mjs');
    const imports = `import { existsSync } from 'node:fs'; import { parentPort } from 'node:worker_threads';`;
    await writeFile(file, `${imports}${held}`);
    const large = reader({ script: pathToFileURL(file) });
    const queued = Promise.withResolvers<undefined>();
    const { camera, line } = await lineTo({
      read: async (...reply) => {
        queued.resolve(undefined);
        return large.read(...reply);
      },
    });
    camera.misbehave('GetServices', { raw: `fine${' '.repeat(small_chars_max)}` });
    const slow = large.read('slow', forever);
    await eventually('it is being read', () => large.state === 'reading');
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    try {
      const innocent = line.call(services);
      await queued.promise;
      vi.advanceTimersByTime(15_000);
      await writeFile(join(dir, 'go'), '');
      expect(await slow).toMatchObject({ kind: 'read' });
      expect(await innocent).toMatchObject({
        kind: 'reply',
        body: { text: expect.stringContaining('fine') as string },
      });
    } finally {
      vi.useRealTimers();
    }
  });
});

it('reads those that waited behind a stalled thread in their order, and refuses more than it can keep', async () => {
  const large = badReader();
  const order: string[] = [];
  const guilty = large.read('stall', forever);
  await eventually('it is being read', () => large.state === 'reading');
  const waiting = Array.from({ length: 64 }, async (_, index) => {
    const reading = await large.read(`reply ${index}`, forever);
    if (reading.kind === 'read') order.push(reading.body.text);
  });
  expect(await large.read('one too many', forever)).toMatchObject({ why: 'interrupted' });
  expect(await guilty).toMatchObject({ why: 'stalled' });
  await Promise.all(waiting);
  expect(order).toEqual(Array.from({ length: 64 }, (_, index) => `reply ${index}`));
});

it('loses the thread by a reply that needs too much memory, and nothing else', async () => {
  const large = badReader();
  const [guilty, innocent] = [large.read('devour', forever), large.read('fine', forever)];
  expect(await guilty).toMatchObject({ why: 'stalled' });
  expect(await innocent).toMatchObject({ kind: 'read', body: { text: 'fine' } });
  expect(large.stalls).toBe(1);
});

it('does not read what is no longer waited for', async () => {
  const large = badReader();
  const guilty = large.read('stall', forever);
  const call = new AbortController();
  const late = large.read('late', call.signal);
  call.abort();
  expect(await late).toMatchObject({ why: 'interrupted' });
  expect(await guilty).toMatchObject({ why: 'stalled' });
  expect(await large.read('later', call.signal)).toMatchObject({ why: 'interrupted' });
});

it('ends with its signal, in the middle of a reply and before one', async () => {
  const large = badReader();
  const reading = [large.read('stall', forever), large.read('waits', forever)];
  await eventually('it is being read', () => large.state === 'reading');
  stopping.abort();
  for (const each of reading) expect(await each).toMatchObject({ why: 'interrupted' });
  await large.ended();
  expect(large.state).toBe('absent');
  expect(await large.read('fine', forever)).toMatchObject({ why: 'interrupted' });
  expect(large.state).toBe('absent');
});

it('blames no camera for a thread that cannot run, and reports once that it cannot and once that it can', async () => {
  await withDirectory(async (dir) => {
    const file = join(dir, 'thread.mjs');
    await writeFile(file, 'throw new Error("no memory");');
    const large = reader({ script: pathToFileURL(file) });
    for (let round = 0; round < 2; round += 1) {
      expect(await large.read('x', forever)).toMatchObject({ why: 'interrupted' });
    }
    expect(log.at('warn')).toEqual([texts.parser_crashed]);
    await writeFile(file, `import { parentPort } from 'node:worker_threads';${answering}`);
    expect(await large.read('x', forever)).toMatchObject({ kind: 'read' });
    expect(log.at('info')).toEqual([texts.parser_restarted]);
    expect(large.stalls).toBe(0);
  });
});
