/** The broker for trying out. */
import { connectAsync } from 'mqtt';
import { expect, test } from 'vitest';
import { embeddedBrokerOptions, startEmbeddedBroker } from '../../../src/cli/daemon/embedded-broker.ts';

test('two brokers run side by side, and each serves its retained messages to a late subscriber', async () => {
  const ends = new AbortController();
  const [first, second] = [await startEmbeddedBroker(ends.signal), await startEmbeddedBroker(ends.signal)];
  expect(first.port).not.toBe(second.port);
  const { url, username } = embeddedBrokerOptions('kit', second.port);
  const publisher = await connectAsync(url, { username: username ?? '', protocolVersion: 4 });
  await publisher.publishAsync('k1/kit/up/state', 'here', { qos: 1, retain: true });
  const late = await connectAsync(url, { protocolVersion: 4 });
  const heard = new Promise<string>((resolve) => {
    late.on('message', (_, payload) => resolve(payload.toString()));
  });
  await late.subscribeAsync('k1/#', { qos: 1 });
  expect(await heard).toBe('here');
  await Promise.all([publisher.endAsync(), late.endAsync()]);
  ends.abort();
  await Promise.all([first.closed, second.closed]);
});
