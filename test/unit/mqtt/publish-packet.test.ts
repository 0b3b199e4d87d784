/** PUBLISH packets must be, byte for byte, what MQTT.js would have written. */
import fc from 'fast-check';
import { generate } from 'mqtt-packet';
import { setImmediate as nextTick } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { bufferBytes } from '../../support/process-stats.ts';
import { encodePublish, type Publication, publishBytes } from '../../../src/mqtt/publisher.ts';

const expiry_s_max = 0xff_ff_ff_ff;
const packet_id_max = 65_535;
const protocols = ['5', '3.1.1'] as const;

function byLibrary({ topic, body, retain, expiry_s }: Publication, packet_id: number, isV5: boolean): Buffer {
  const properties = expiry_s === undefined ? {} : { properties: { messageExpiryInterval: expiry_s } };
  return generate(
    { cmd: 'publish', topic, payload: body, qos: 1, retain, dup: false, messageId: packet_id, ...properties },
    { protocolVersion: isV5 ? 5 : 4 },
  );
}

/** The versions in which the packet differs from that of the library, or from its own announced length. */
function differences(publication: Publication, packet_id: number): readonly string[] {
  return protocols.filter((protocol) => {
    const packet = encodePublish(publication, packet_id, protocol);
    const expected = byLibrary(publication, packet_id, protocol === '5');
    return !packet.equals(expected) || publishBytes(publication, protocol) !== expected.length;
  });
}

const text = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }), fc.string());
const publications = fc.record({
  topic: text,
  body: fc.oneof(
    text,
    fc.uint8Array().map((bytes) => Buffer.from(bytes)),
  ),
  retain: fc.boolean(),
  expiry_s: fc.option(fc.integer({ min: 0, max: expiry_s_max }), { nil: undefined }),
});

it('PUBLISH is encoded as MQTT.js does it, of any topic and body, in both versions', () => {
  fc.assert(
    fc.property(publications, fc.integer({ min: 1, max: packet_id_max }), (publication, packet_id) => {
      expect(differences(publication, packet_id)).toEqual([]);
    }),
  );
});

it.each([128, 16_384, 2_097_152])(
  'PUBLISH of about %i bytes has its length in as many bytes as with MQTT.js',
  (length) => {
    for (let bytes = length - 16; bytes <= length; bytes += 1) {
      const publication = { topic: 'a/b', body: 'x'.repeat(bytes), retain: false, expiry_s: undefined };
      expect(differences(publication, 1)).toEqual([]);
    }
  },
);

it('PUBLISH of half a surrogate pair is as long as its length shows', () => {
  const publication = { topic: 'a', body: 'a\ud800b', retain: true, expiry_s: 300 };
  expect(differences(publication, packet_id_max)).toEqual([]);
});

it('PUBLISH of a topic above 65,535 bytes is refused instead of cut', () => {
  const publication = { topic: 'x'.repeat(65_536), body: '', retain: false, expiry_s: undefined };
  expect(() => encodePublish(publication, 1, '5')).toThrow(RangeError);
});

it('packets of three thousand different lengths leave no pool of buffers behind', async () => {
  const lengths = 3_000;
  const before = bufferBytes();
  for (let length = 0; length < lengths; length += 1) {
    encodePublish({ topic: 't', body: Buffer.alloc(length), retain: false, expiry_s: undefined }, 1, '5');
    await nextTick();
    // Others take small buffers from the same pool meanwhile.
    for (let other = 0; other < 20; other += 1) Buffer.from('x'.repeat(3_000));
  }
  const kept_bytes = bufferBytes() - before;
  expect(kept_bytes / lengths).toBeLessThan(1_000);
});
