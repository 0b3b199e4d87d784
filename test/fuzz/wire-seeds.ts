/** Valid messages of D-Bus, MQTT and WebSocket to begin with. */
import { deflateRawSync } from 'node:zlib';
import { marshall } from 'dbus-native/lib/message.js';
import { generate, type Packet } from 'mqtt-packet';

const manager = 'org.freedesktop.ModemManager1';
const modem_path = '/org/freedesktop/ModemManager1/Modem/0';

/** Answers to GetManagedObjects, GetAll and GetLocation. */
export const dbusSeeds: readonly Buffer[] = [
  answer('a{oa{sa{sv}}}', [
    [
      [
        modem_path,
        [
          [
            `${manager}.Modem`,
            [
              ['State', ['i', 11]],
              ['SignalQuality', ['(ub)', [80, true]]],
              ['Ports', ['a(su)', [['wwan0', 2]]]],
              ['Bearers', ['ao', ['/org/freedesktop/ModemManager1/Bearer/0']]],
            ],
          ],
          [`${manager}.Modem.Modem3gpp`, [['OperatorName', ['s', 'Tel']]]],
        ],
      ],
    ],
  ]),
  answer('a{sv}', [
    [
      ['Interface', ['s', 'wwan0']],
      ['Connected', ['b', true]],
    ],
  ]),
  answer('a{uv}', [
    [
      [
        2,
        [
          'a{sv}',
          [
            ['utc-time', ['s', '120000.00']],
            ['latitude', ['d', 47.3]],
            ['longitude', ['d', 8.5]],
          ],
        ],
      ],
    ],
  ]),
];

function answer(signature: string, body: readonly unknown[]): Buffer {
  return marshall({ serial: 7, type: 2, replySerial: 1, sender: ':1.2', signature, body });
}

/** One of each packet that a broker sends. */
export function mqttSeeds(protocol: '5' | '3.1.1'): readonly Buffer[] {
  const isV5 = protocol === '5';
  const publish = {
    cmd: 'publish',
    topic: 'k1/a/down/ack',
    payload: '{"epoch":1}',
    dup: false,
    retain: false,
  } as const;
  const packets: Packet[] = [
    {
      ...publish,
      qos: 1,
      messageId: 7,
      ...(isV5 && { properties: { messageExpiryInterval: 9, userProperties: { a: 'b' } } }),
    },
    { ...publish, qos: 0 },
    { cmd: 'puback', messageId: 7, ...(isV5 && { reasonCode: 0x10 }) },
    { cmd: 'suback', messageId: 8, granted: [1, 0x87] },
    { cmd: 'pingresp' },
    ...(isV5 ? ([{ cmd: 'disconnect', reasonCode: 0x8e }] as const) : []),
  ];
  const bytes = packets.map((packet) => generate(packet, { protocolVersion: isV5 ? 5 : 4 }));
  return [...bytes, Buffer.concat(bytes)];
}

const masked = 0x80;
const [text, ping, close, compressed] = [0x81, 0x89, 0x88, 0xc1] as const;

/** Frames of a client, under a mask of zeros (RFC 6455, section 5.2; RFC 7692, section 7.2). */
export const socketSeeds: readonly Buffer[] = [
  frame(text, Buffer.from('{"type":"auth","api_key":"k"}')),
  frame(text, Buffer.from('{"type":"subscribe","assets":"*"}')),
  frame(compressed, deflateRawSync('{"type":"ping"}')),
  Buffer.concat([
    frame(0x01, Buffer.from('{"type":')),
    frame(ping, Buffer.alloc(0)),
    frame(masked, Buffer.from('"ping"}')),
  ]),
  frame(close, Buffer.from([0x03, 0xe8])),
];

function frame(first: number, payload: Buffer): Buffer {
  return Buffer.concat([Buffer.from([first, masked | payload.length, 0, 0, 0, 0]), payload]);
}
