/** Protocols that libraries read for us, with our limits around them: SNMP and MQTT. */
import { EventEmitter } from 'node:events';
import { Duplex } from 'node:stream';
import { generate, type Packet, parser } from 'mqtt-packet';
import { limits as radio_limits } from '../../drivers/vendorradio/limits.ts';
import { openSnmp, type SnmpLogin } from '../../drivers/vendorradio/snmp/snmp-session.ts';
import { message_limits, readJson } from '../../src/contract/bounded-json.ts';
import { DeviceRejected, DeviceUnreachable } from '../../src/platform/errors.ts';
import { openSession } from '../../src/mqtt/session.ts';
import { ConnectFailed } from '../../src/mqtt/connect-failed.ts';
import { FrameFilter, MalformedPacket } from '../../src/mqtt/frames.ts';
import {
  integer,
  report_pdu,
  response_pdu,
  tlv,
  types,
  v3Message,
  varbind,
} from '../support/drivers/snmp-bytes.ts';
import type { Target } from './engine.ts';
import { brokerOptions } from '../support/brokers/broker-options.ts';

const device_failed = (error: unknown): boolean =>
  error instanceof DeviceUnreachable || error instanceof DeviceRejected;

/** Stands for the id of the request, which is another one each time. */
const request_id = Buffer.from([0x11, 0x22, 0x33, 0x44]);
const sys_name = '1.3.6.1.2.1.1.5.0';
const community = 'readers';
const reader: SnmpLogin = { version: '2c', community };
const watcher: SnmpLogin = {
  version: '3',
  username: 'watcher',
  auth: { protocol: 'sha', key: 'authentication1' },
  priv: undefined,
};
const agent = { address: '192.0.2.1', port: 161, family: 'IPv4', size: 0 } as const;

/** A report makes the library ask once more, for as long as it is answered. */
const answers_max = 4;

/** A UDP socket without a network: what is sent is answered with `input`, under the id of the request. */
class AnsweringSocket extends EventEmitter {
  readonly #input: Buffer;
  #answers_left = answers_max;

  constructor(input: Buffer) {
    super();
    this.#input = input;
  }

  send(...[request, , , , , done]: readonly unknown[]): void {
    if (typeof done === 'function') Reflect.apply(done, undefined, [null, 0]);
    if (this.#answers_left === 0) return;
    this.#answers_left -= 1;
    const answer = Buffer.from(this.#input);
    const at = answer.indexOf(request_id);
    if (at >= 0 && Buffer.isBuffer(request)) answer.writeInt32BE(idIn(request), at);
    this.emit('message', answer, agent);
  }

  ref(): void {}

  unref(): void {}

  close(): void {
    this.emit('close');
  }
}

/** Version 2c: the id of the first PDU. Version 3: that of the message. */
function idIn(request: Buffer): number {
  const at = request[4] === 3 ? 7 : 7 + (request[6] ?? 0) + 2;
  const length = request[at + 1] ?? 1;
  return request.readIntBE(at + 2, Math.min(4, length));
}

async function readSnmp(login: SnmpLogin, input: Buffer): Promise<void> {
  const openUdp = () => new AnsweringSocket(input) as never;
  const session = openSnmp(agent.address, agent.port, login, { limits: radio_limits, openUdp });
  const answered = input.length % 2 === 0 ? session.get([sys_name]) : session.column('1.3.6.1.2.1.2.2.1.2');
  // What is no answer leaves the request open: closing the session ends it.
  session.close();
  await answered;
}

const oid = [0x2b, 6, 1, 2, 1, 1, 5, 0];
const snmp_values = [
  integer(7),
  tlv(types.octets, Buffer.from('radio')),
  tlv(0x46, Buffer.alloc(9, 1)),
  tlv(0x40, Buffer.from([192, 0, 2, 1])),
  tlv(0x05),
  tlv(0x82),
];
const snmp_tokens = [
  '\u0002\u0004\u0011\u0022\u0033\u0044',
  '\u0030',
  '\u00a2',
  '\u00a8',
  '\u0084\u00ff\u00ff\u00ff\u00ff',
  '\u0006\u0000',
  '\u0046',
];
const snmp_opening = Buffer.concat([
  tlv(types.integer, Buffer.from([1])),
  tlv(types.octets, Buffer.from(community)),
]);

/** One of each packet that a broker sends. */
function mqttSeeds(protocol: '5' | '3.1.1'): readonly Buffer[] {
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

const packet_bytes_max = 4_096;

function readPackets(protocol: '5' | '3.1.1', input: Buffer): void {
  const packets: unknown[] = [];
  const reading = parser({ protocolVersion: protocol === '5' ? 5 : 4 });
  // MQTT.js ends the connection at an error.
  let isOver = false;
  reading.on('packet', (packet) => packets.push(packet));
  reading.on('error', () => (isOver = true));
  const ignore = (): void => undefined;
  const frames = new FrameFilter({
    protocol,
    packet_bytes_max,
    isHeld: () => false,
    onMessage: (message) => packets.push(message),
    onPuback: (puback) => packets.push(puback),
    onOversize: ignore,
    onSkipped: ignore,
  });
  const cut = (input[0] ?? 0) % Math.max(1, input.length);
  for (const chunk of [input.subarray(0, cut), input.subarray(cut)]) {
    for (const piece of frames.push(chunk)) if (!isOver) reading.parse(piece);
  }
}

/** A connection to a broker that accepts and then sends `input`, read as kit and service read it. */
async function readConnection(input: Buffer): Promise<void> {
  const protocol = input.length % 2 === 0 ? '5' : '3.1.1';
  const connack = protocol === '5' ? [0x20, 3, 0, 0, 0] : [0x20, 2, 0, 0];
  const socket = new Duplex({
    read: () => undefined,
    write(this: Duplex, _chunk, _encoding, done) {
      if (!this.readableEnded && !sent) {
        sent = true;
        this.push(Buffer.concat([Buffer.from(connack), input]));
        this.push(null);
      }
      done();
    },
  });
  let sent = false;
  const over = new AbortController();
  const broker = brokerOptions('mqtt://192.0.2.1', { protocol });
  const ended = new Promise((resolve) => {
    socket.once('close', resolve);
  });
  try {
    const session = await openSession(
      {
        broker,
        protocol,
        packet_bytes_max,
        client_id: 'fuzz',
        session_expiry_s: 0,
        receive_maximum: 16,
        openTransport: async () => ({ stream: socket }),
        onOversize: () => undefined,
        onMessage: async ({ payload }) => {
          readJson(payload, message_limits);
          return true;
        },
      },
      over.signal,
    );
    await ended;
    await session.closed;
  } finally {
    over.abort();
    socket.destroy();
  }
}

const mqtt_tokens = [
  '\u0030',
  '\u0032',
  '\u0040\u0002',
  '\u0062\u0000',
  '\u0062\u0002',
  '\u0090\u0003',
  '\u00d0\u0000',
  '\u00e0\u0000',
  '\u0026\u0000',
  '\u0020\u0002\u0000\u0000',
  '\u00ff\u00ff\u00ff\u007f',
];

export const wireTargets: readonly Target[] = [
  {
    name: 'snmp-v2c',
    read: async (input) => readSnmp(reader, input),
    allows: device_failed,
    seeds: snmp_values.map((value) =>
      tlv(types.sequence, snmp_opening, response_pdu(request_id, [varbind(oid, value)])),
    ),
    dictionary: [...snmp_tokens, community],
    bytes_max: 2_048,
  },
  {
    name: 'snmp-v3',
    read: async (input) => readSnmp(input.length % 3 === 0 ? reader : watcher, input),
    allows: device_failed,
    seeds: [0, 1, 3].flatMap((flags) =>
      [response_pdu(request_id, [varbind(oid, integer(7))]), report_pdu(request_id)].map((pdu) =>
        v3Message(request_id, { flags, pdu }),
      ),
    ),
    dictionary: [...snmp_tokens, '\u0004\u0001\u0001', '\u0004\u0001\u0003'],
    bytes_max: 2_048,
  },
  ...(['5', '3.1.1'] as const).map((protocol): Target => ({
    name: protocol === '5' ? 'mqtt5-packets' : 'mqtt3-packets',
    read: (input) => readPackets(protocol, input),
    allows: (error) => error instanceof MalformedPacket,
    seeds: mqttSeeds(protocol),
    dictionary: mqtt_tokens,
    bytes_max: 8_192,
  })),
  {
    name: 'mqtt-connection',
    read: readConnection,
    allows: (error) => error instanceof ConnectFailed,
    seeds: [...mqttSeeds('5'), ...mqttSeeds('3.1.1')],
    dictionary: mqtt_tokens,
    bytes_max: 8_192,
  },
];
