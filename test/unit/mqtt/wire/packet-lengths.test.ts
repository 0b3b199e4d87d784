/** What MQTT.js keeps for ever of packets that were sent must stay small. */
// Before the library, as in the program.
import '../../../../src/mqtt/client.ts';
import { Writable } from 'node:stream';
import { setImmediate as nextTick } from 'node:timers/promises';
import { writeToStream } from 'mqtt-packet';
import numbers from 'mqtt-packet/numbers.js';
import { expect, test } from 'vitest';
import { bufferBytes } from '../../../support/process-stats.ts';

test('packets of three thousand different lengths leave no pool of buffers behind', async () => {
  const lengths = 3_000;
  const sink = new Writable({ write: (_chunk, _encoding, done) => done() });
  const before = bufferBytes();
  for (let length = 0; length < lengths; length += 1) {
    const payload = Buffer.alloc(length);
    const of_one_packet = { dup: false, retain: false, qos: 0 } as const;
    writeToStream({ cmd: 'publish', topic: 't', payload, ...of_one_packet }, sink);
    await nextTick();
    // Others take small buffers from the same pool meanwhile.
    for (let other = 0; other < 20; other += 1) Buffer.from('x'.repeat(3_000));
  }
  const kept_bytes = bufferBytes() - before;
  expect(kept_bytes / lengths).toBeLessThan(1_000);
});

test.each([
  [0, [0]],
  [127, [0x7f]],
  [128, [0x80, 0x01]],
  [16_383, [0xff, 0x7f]],
  [16_384, [0x80, 0x80, 0x01]],
  [2_097_151, [0xff, 0xff, 0x7f]],
  [268_435_455, [0xff, 0xff, 0xff, 0x7f]],
  [268_435_456, []],
])('the length %i is encoded as the specification shows', (length, bytes) => {
  expect([...numbers.genBufVariableByteInt(length)]).toEqual(bytes);
});
