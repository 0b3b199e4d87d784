import { expect, test } from 'vitest';
import { startChild } from '../../support/child.ts';

/** Encodes a packet with the library as src/mqtt has loaded it, while its descriptions are switched on. */
const script = `
  import { createRequire } from 'node:module';
  await import('${new URL('../../../src/mqtt/client.ts', import.meta.url).href}');
  const require = createRequire('${new URL('../../../src/mqtt/client.ts', import.meta.url).href}');
  const { generate } = require('mqtt-packet');
  require(require.resolve('debug/src/node.js', { paths: [require.resolve('mqtt-packet')] })).enable('mqtt*');
  console.log(generate({ cmd: 'pingreq' }).length);
`;

test('MQTT.js describes no packet, so that no message pays for it', async () => {
  const ended = await startChild(['--input-type=module', '--eval', script]).ended;
  expect(ended).toMatchObject({ code: 0, stdout: '2\n', stderr: '' });
});

test('MQTT.js describes its packets where DEBUG is set', async () => {
  const env = { DEBUG: 'mqtt-packet:*' };
  const ended = await startChild(['--input-type=module', '--eval', script], { env }).ended;
  expect(ended).toMatchObject({ code: 0, stdout: '2\n' });
  expect(ended.stderr).toContain('pingreq');
});
