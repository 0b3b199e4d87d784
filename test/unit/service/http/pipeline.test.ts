/** Requests that come at once on many connections do not hold up the event loop. */
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { expect, it } from 'vitest';
import { turn } from '../../../../src/platform/time.ts';
import { Pipeline } from '../../../../src/service/http/server/pipeline.ts';

it('begins the requests of many connections over several turns', async () => {
  const pipeline = new Pipeline();
  let begun = 0;
  for (let n = 0; n < 20; n += 1) {
    const socket = new Socket();
    const response = new ServerResponse(new IncomingMessage(socket));
    pipeline.take(socket, response, () => (begun += 1));
  }
  expect(begun).toBe(8);
  await turn();
  expect(begun).toBe(16);
  await turn();
  expect(begun).toBe(20);
  pipeline.take(new Socket(), new ServerResponse(new IncomingMessage(new Socket())), () => (begun += 1));
  expect(begun).toBe(21);
});
