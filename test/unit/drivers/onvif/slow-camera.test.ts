/** A camera that takes almost the whole deadline for each of its answers. The deadline passes on a clock of the test. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { envelope } from '../../../../drivers/onvif/sim/services.ts';
import { openLine } from '../../../../drivers/onvif/soap/line.ts';
import { call_deadline_ms, operation } from '../../../../drivers/onvif/soap/soap.ts';
import { texts } from '../../../../drivers/onvif/texts.ts';

const stopping = new AbortController();
const unused = { read: async () => Promise.reject(new Error('no reply here is large')) };
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
    unused,
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
