/** A camera that takes almost the whole deadline for each of its answers. The deadline passes on a clock of the test. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { move } from '../../../../drivers/onvif/camera/movement.ts';
import { settleStops } from '../../../../drivers/onvif/camera/ptz-stop.ts';
import { expectSameCamera } from '../../../../drivers/onvif/camera/device.ts';
import { pull_slack_ms } from '../../../../drivers/onvif/events/pull-point.ts';
import { envelope } from '../../../../drivers/onvif/sim/services.ts';
import { openLine } from '../../../../drivers/onvif/soap/line.ts';
import { call_deadline_ms, failure, operation, type Soap } from '../../../../drivers/onvif/soap/soap.ts';
import { texts } from '../../../../drivers/onvif/texts.ts';
import { OwedStops } from '../../../../src/toolkit/device/owed-stops.ts';
import { context } from '../../../support/cameras/onvif-lab.ts';

let stopping = new AbortController();
const almost_ms = call_deadline_ms - 100;
const server = createServer();

/** The next request, once it is here whole. */
async function asked(): Promise<{ readonly body: string; readonly response: ServerResponse }> {
  const [request, response] = (await once(server, 'request')) as [IncomingMessage, ServerResponse];
  let body = '';
  for await (const chunk of request) body += String(chunk);
  return { body, response };
}

beforeEach(async () => {
  stopping = new AbortController();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(async () => {
  vi.useRealTimers();
  stopping.abort();
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
});

it('is given the deadline for each answer: to its clock, to a request with a challenge, and to its repetition', async () => {
  const at = server.address();
  const where = { host: '127.0.0.1', port: typeof at === 'object' && at ? at.port : 0, path: '/' };
  const line = openLine(
    {
      ...where,
      secure: false,
      fingerprint: undefined,
      username: 'kit',
      password: 'secret',
      onRefused: () => undefined,
    },
    stopping.signal,
  );
  const outcome = line.call(operation('device', 'GetDeviceInformation'));
  const clock = await asked();
  expect(clock.body).toContain('GetSystemDateAndTime');
  vi.advanceTimersByTime(almost_ms);
  clock.response.end(envelope('<GetSystemDateAndTimeResponse/>', 's'));
  const challenged = await asked();
  vi.advanceTimersByTime(almost_ms);
  challenged.response.writeHead(401, { 'WWW-Authenticate': 'Digest realm="camera", nonce="1"' }).end();
  const repeated = await asked();
  vi.advanceTimersByTime(almost_ms);
  repeated.response.end(
    envelope('<GetDeviceInformationResponse><Model>Slow</Model></GetDeviceInformationResponse>', 's'),
  );
  expect(await outcome).toMatchObject({ kind: 'reply' });
  const late = line.call(operation('device', 'GetDeviceInformation'));
  await asked();
  vi.advanceTimersByTime(call_deadline_ms);
  expect(await late).toMatchObject({ kind: 'failure', reason: texts.answer_late(call_deadline_ms / 1_000) });
});

const motor = { url: 'http://camera/ptz', profile: 'P1', axis: 'pan_tilt' } as const;

/** A camera that answers each operation after `took_ms`, where it is given as long, and never those that are named. */
function slowCamera(took_ms: number, mute: readonly string[] = []) {
  const asked: string[] = [];
  const soap: Soap = {
    connection: {
      ...here,
      path: '/',
      secure: false,
      fingerprint: undefined,
      username: undefined,
      password: undefined,
    },
    login: 'none',
    call: async ({ action, deadline_ms = call_deadline_ms }) => {
      const name = action.slice(action.lastIndexOf('/') + 1);
      asked.push(name);
      if (deadline_ms < took_ms || mute.includes(name)) return failure('deadline', texts.answer_late(1));
      return { kind: 'reply', body: { text: '', attributes: {}, children: {} }, local_address: undefined };
    },
    fetch: async () => failure('malformed', ''),
    close: () => undefined,
  };
  return { soap, asked };
}
const here = { host: '127.0.0.1', port: 80 };

it('can confirm the stop that it owes', async () => {
  const { soap, asked } = slowCamera(almost_ms);
  const saved: (readonly string[])[] = [];
  const owed = new OwedStops<string>({
    owed: ['P1'],
    save: async (keys: readonly string[]) => void saved.push(keys),
  });
  const memory = { facts: { ptz_url: motor.url } };
  await settleStops(soap, owed, memory);
  expect([saved, asked]).toEqual([[[]], ['Stop', 'ContinuousMove']]);
});

it('owes another stop when a movement had no answer, since it may begin after the first one', async () => {
  const { soap, asked } = slowCamera(0, ['ContinuousMove']);
  const saved: (readonly string[])[] = [];
  const owed = new OwedStops<string>({
    owed: [],
    save: async (keys: readonly string[]) => void saved.push(keys),
  });
  const parts = { ...motor, soap, owed, move_ms: 1_000, signal: stopping.signal, stopping: () => undefined };
  await expect(move(parts, [1, 0], context())).rejects.toThrow(/a stop was sent/u);
  expect(asked.slice(0, 2)).toEqual(['ContinuousMove', 'Stop']);
  expect(saved.at(-1)).toEqual(['P1']);
});

it('is alive, and its pulls are waited for, as long as its answers come within the deadline of each call', async () => {
  const { soap } = slowCamera(almost_ms);
  const information = { manufacturer: null, model: null, firmware: null, serial: null };
  await expectSameCamera(soap, { information, mac: undefined, asset_key: 'onvif:configured:a' });
  expect(pull_slack_ms).toBeGreaterThanOrEqual(almost_ms);
});
