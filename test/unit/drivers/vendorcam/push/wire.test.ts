/** Frames, ciphers and alarms of the vendor's own protocol. */
import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import { nonceIn, reportsIn } from '../../../../../drivers/vendorcam/push/push.ts';
import {
  aesDecrypt,
  aesEncrypt,
  aesKey,
  hashOf,
  textIn,
  xor,
} from '../../../../../drivers/vendorcam/push/cipher.ts';
import { classes, frameBytes, FrameReader } from '../../../../../drivers/vendorcam/push/wire.ts';
import { DeviceUnreachable } from '../../../../../src/platform/errors.ts';
import { forAll } from '../../../../support/for-all.ts';

/** An alarm as public documents show it, with made-up values. */
const documented = `<?xml version="1.0" encoding="UTF-8" ?>
<body>
<AlarmEventList version="1.1">
<AlarmEvent version="1.1">
<channelId>0</channelId>
<status>MD</status>
<AItype>people,dog_cat</AItype>
<recording>1</recording>
<timeStamp>0</timeStamp>
</AlarmEvent>
</AlarmEventList>
</body>
`;

const list = (events: string): string =>
  `<?xml version="1.0"?><body><AlarmEventList>${events}</AlarmEventList></body>`;
const event = (inner: string): string => `<AlarmEvent version="1.1">${inner}</AlarmEvent>`;

describe('A list of alarms', () => {
  it('is read as the vendor sends it', () => {
    expect(reportsIn(documented)).toEqual([
      { channel: 0, motion: true, visitor: false, ai: ['people', 'dog_cat'] },
    ]);
  });

  it.each([
    [
      'the end of all',
      '<channelId>3</channelId><status>none</status><AItype>none</AItype>',
      { channel: 3, motion: false, visitor: false, ai: [] },
    ],
    [
      'a doorbell',
      '<channelId>0</channelId><status>MD,visitor</status>',
      { channel: 0, motion: true, visitor: true, ai: undefined },
    ],
    [
      'an infrared sensor',
      '<channelId>0</channelId><status>none</status><AItype>other</AItype>',
      { channel: 0, motion: true, visitor: false, ai: [] },
    ],
    [
      'kinds alone',
      '<channelId>0</channelId><AItype>vehicle</AItype>',
      { channel: 0, motion: undefined, visitor: undefined, ai: ['vehicle'] },
    ],
    [
      'kinds of the future',
      '<channelId>0</channelId><status>none</status><AItype>drone,face</AItype>',
      { channel: 0, motion: false, visitor: false, ai: ['face'] },
    ],
  ])('reads %s', (_what, inner, report) => {
    expect(reportsIn(list(event(inner)))).toEqual([report]);
  });

  it('reads each channel of a recorder, and leaves out other events and invalid channels', () => {
    const events = [
      event('<channelId>0</channelId><status>MD</status>'),
      '<DayNightEvent version="1.1"><channelId>1</channelId><mode>day</mode></DayNightEvent>',
      event('<channelId>-1</channelId><status>MD</status>'),
      event('<channelId>999</channelId><status>MD</status>'),
      event(
        '<channelId>7</channelId><status>none</status><smartAiTypeList><smartAiType><channelId>9</channelId><status>MD</status></smartAiType></smartAiTypeList>',
      ),
    ];
    expect(reportsIn(list(events.join('')))?.map(({ channel, motion }) => [channel, motion])).toEqual([
      [0, true],
      [7, false],
    ]);
  });

  it.each([
    ['nothing', ''],
    ['another message', '<?xml version="1.0"?><body><LinkType/></body>'],
    ['a document type', `<!DOCTYPE x [<!ENTITY a "b">]>${documented}`],
    ['depth', `<?xml version="1.0"?>${'<a>'.repeat(20)}<AlarmEventList>`],
    ['count', list('<a/>'.repeat(5_000))],
    ['length', list(' '.repeat(70_000))],
    ['an end without a begin', '</body></AlarmEventList>'],
  ])('refuses %s', (_what, text) => {
    expect(reportsIn(text)).toBeUndefined();
  });

  it('ends its lists at 64 alarms', () => {
    const many = Array.from({ length: 200 }, () => event('<channelId>0</channelId><status>MD</status>'));
    expect(reportsIn(list(many.join('')))).toHaveLength(64);
  });

  it('is read from any text without a throw', () => {
    const tokens = fc.constantFrom(
      '<',
      '>',
      '</',
      '/>',
      '<?xml',
      '<AlarmEvent>',
      '</AlarmEvent>',
      '<AlarmEventList>',
      '<channelId>1</channelId>',
      'MD',
      ',',
    );
    forAll(fc.array(fc.oneof(tokens, fc.string())), (parts) => {
      reportsIn(parts.join(''));
      nonceIn(parts.join(''));
    });
  });
});

describe('Frames', () => {
  const frame = { command: 33, id: 0x0201_fa, status: 200, class: classes.reply };

  it('come whole, whatever pieces they arrive in', () => {
    const payload = Buffer.from(documented);
    const nonce = { ...frame, class: classes.nonce, payload: Buffer.from('n') };
    const bytes = Buffer.concat([frameBytes({ ...frame, payload }), frameBytes(nonce), frameBytes(frame)]);
    forAll(fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 60 }), (sizes) => {
      const reader = new FrameReader(10_000);
      const found = [];
      let at = 0;
      for (let turn = 0; at < bytes.length; turn += 1) {
        const size = sizes[turn % sizes.length] ?? 1;
        found.push(...reader.take(bytes.subarray(at, at + size)));
        at += size;
      }
      expect(found).toEqual([{ ...frame, payload }, nonce, { ...frame, payload: Buffer.alloc(0) }]);
    });
  });

  it('are read without their extension', () => {
    const bytes = frameBytes({ ...frame, payload: Buffer.from('extension, payload') });
    bytes.writeUInt32LE('extension, '.length, 20);
    expect(new FrameReader(100).take(bytes)[0]?.payload.toString()).toBe('payload');
    bytes.writeUInt32LE(0xffff_ffff, 20);
    expect(new FrameReader(100).take(bytes)[0]?.payload).toHaveLength(0);
  });

  it.each([
    ['another protocol', Buffer.from('HTTP/1.1 400 Bad Request\r\n')],
    ['an unknown class', frameBytes({ ...frame, class: 0x1234 })],
    ['a longer body than allowed', frameBytes({ ...frame, payload: Buffer.alloc(101) })],
  ])('are refused for %s', (_what, bytes) => {
    expect(() => new FrameReader(100).take(bytes)).toThrow(DeviceUnreachable);
  });
});

describe('Ciphers', () => {
  it('hash a password with the nonce into 31 digits of MD5', () => {
    expect(hashOf('admin')).toBe('21232F297A57A5A743894A0E4A801FC');
    expect(aesKey('NONCE', 'secret')).toHaveLength(16);
  });

  it('are undone by their inverse, for every offset', () => {
    forAll(fc.uint8Array(), fc.nat(0xffff_ffff), (bytes, id) => {
      const plain = Buffer.from(bytes);
      expect(xor(xor(plain, id), id)).toEqual(plain);
      const key = aesKey(String(id), 'secret');
      expect(aesDecrypt(aesEncrypt(plain, key), key)).toEqual(plain);
    });
  });

  it('of the login use the published key, from the offset on', () => {
    expect(xor(Buffer.alloc(9), 0)).toEqual(Buffer.from('1f2d3c4b5a6978ff1f', 'hex'));
    expect(xor(Buffer.alloc(3), 0x0102_03fa)).toEqual(Buffer.from('c6b1a0', 'hex'));
  });

  it.each(['AES', 'XOR', 'none'])('are found out for a text that is encrypted with %s', (way) => {
    const key = aesKey('NONCE', 'secret');
    const plain = Buffer.from(documented);
    const payload = way === 'AES' ? aesEncrypt(plain, key) : way === 'XOR' ? xor(plain, 0x05fa) : plain;
    const frame = { command: 33, id: 0x05fa, status: 200, class: classes.reply, payload };
    expect(textIn(frame, key)).toBe(documented);
    expect(textIn({ ...frame, payload: Buffer.from('binary') }, key)).toBeUndefined();
  });
});
