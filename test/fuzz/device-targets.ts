/** What devices answer: MAVLink frames, SOAP, vendor JSON, ubus, gpsd, NUT, the dish. */
import { parseDatagram, StreamFramer } from '../../drivers/mavlink/wire/framer.ts';
import { decode as decodeMavlink, encode } from '../../drivers/mavlink/wire/messages.ts';
import { readEnvelope } from '../../drivers/onvif/soap/envelope.ts';
import { readMatches } from '../../drivers/onvif/discovery.ts';
import { readTpv } from '../../drivers/location/location.ts';
import { readingOf, wordsOf } from '../../drivers/power/power.ts';
import {
  encodeField,
  parseHistory,
  parseLocation,
  parseRefusal,
  parseStatus,
} from '../../drivers/starlink/api/messages.ts';
import { nonceIn, reportsIn } from '../../drivers/vendorcam/push/push.ts';
import { aesKey, textIn } from '../../drivers/vendorcam/push/cipher.ts';
import { classes, frameBytes, FrameReader } from '../../drivers/vendorcam/push/wire.ts';
import { readReplies } from '../../drivers/vendorcam/host/replies.ts';
import { answersIn, isBatchRefused, listIn } from '../../drivers/vendorradio/ubus/ubus-wire.ts';
import { readGrants } from '../../drivers/vendorradio/ubus/ubus.ts';
import { DeviceUnreachable } from '../../src/platform/errors.ts';
import { json_punctuation, type Target } from './engine.ts';
import { protobuf, xml } from './structures.ts';

const never = (): boolean => false;
const unreachable = (error: unknown): boolean => error instanceof DeviceUnreachable;
const json_tokens = [...json_punctuation, 'null', '1e400', '"value":', '"result":', '"rspCode":', '"cmd":'];
const bytes_max = 32 * 1024;

const sink = { frame: decodeMavlink };
const envelope = { sysid: 1, compid: 1, seq: 0 };
const to_kit = { target_system: 245, target_component: 191 };
const frames = [
  encode('STATUSTEXT', { severity: 4, text: 'PreArm: gyros', id: 0, chunk_seq: 0 }, envelope),
  encode(
    'HEARTBEAT',
    { custom_mode: 0, type: 2, autopilot: 3, base_mode: 81, system_status: 3, mavlink_version: 3 },
    envelope,
  ),
  encode(
    'PARAM_VALUE',
    { param_id: 'RTL_ALT', param_index: 1, param_count: 2, param_type: 9, param_value: 0x44_bb_80_00 },
    envelope,
  ),
  encode('MISSION_ACK', { ...to_kit, type: 0, mission_type: 1, opaque_id: 7 }, envelope),
  encode(
    'MISSION_CURRENT',
    {
      seq: 2,
      total: 5,
      mission_state: 3,
      mission_mode: 1,
      mission_id: 7,
      fence_id: 8,
      rally_points_id: 9,
    },
    envelope,
  ),
  encode('COMMAND_ACK', { ...to_kit, command: 34, result: 5, progress: 40, result_param2: 0 }, envelope),
].map((frame) => Buffer.from(frame));

const soap = `<?xml version="1.0"?><s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"><s:Body>
<tds:GetDeviceInformationResponse><tds:Model>A &amp; B</tds:Model></tds:GetDeviceInformationResponse></s:Body></s:Envelope>`;
const empty_pull = `<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"><s:Body><e:PullMessagesResponse xmlns:e="e">
<e:CurrentTime>2026-11-21T10:00:00Z</e:CurrentTime><e:TerminationTime>2026-11-21T10:01:00Z</e:TerminationTime>
</e:PullMessagesResponse></s:Body></s:Envelope>`;
const soap_names = [
  's:Fault',
  's:Reason',
  's:Text',
  's:Header',
  's:Body',
  'tds:Model',
  'e:CurrentTime',
  'e:TerminationTime',
  'e:PullMessagesResponse',
  'constructor',
  '__proto__',
  'a',
  'xmlns:a',
];
const soap_values = [
  '',
  ' ',
  '2026-11-21T10:00:00.5Z',
  'true',
  '-1',
  '&amp;',
  '&#0;',
  '&',
  '>',
  '"',
  "'",
  'xmlns=',
  '<',
];
const match = `<d:ProbeMatch><a:Address>urn:uuid:1</a:Address><d:XAddrs>http://192.0.2.1/onvif</d:XAddrs>
<d:Scopes>onvif://www.onvif.org/name/Cam</d:Scopes></d:ProbeMatch>`;

const alarms = `<?xml version="1.0"?><body><AlarmEventList version="1.1"><AlarmEvent version="1.1"><channelId>0</channelId>
<status>MD</status><AItype>people,dog_cat</AItype></AlarmEvent></AlarmEventList></body>`;
const push_key = aesKey('NONCE', 'secret');

const one = [0, 0, 0x80, 0x3f];
/** Status, history and location of a dish, and how it refuses. */
const dish_answers = [
  encodeField(2004, [
    ...encodeField(1, [
      ...encodeField(1, [0x75, 0x74]),
      ...encodeField(2, [0x72]),
      ...encodeField(3, [0x31]),
    ]),
    ...encodeField(2, [0x08, 5]),
    ...encodeField(1014, [0x08, 7]),
    ...encodeField(1004, [0x28, 1, 0x0d, ...one]),
    ...encodeField(1005, [0x08, 1]),
    ...encodeField(1015, [0x08, 1]),
  ]),
  encodeField(2006, [0x08, 3, ...encodeField(1001, [...one, ...one]), ...encodeField(1002, one)]),
  encodeField(1017, [
    ...encodeField(1, [0x09, 0, 0, 0, 0, 0, 0xa0, 0x47, 0x40, 0x11, 0, 0, 0, 0, 0, 0, 0x21, 0x40]),
    0x18,
    1,
  ]),
  encodeField(2, [0x08, 5, ...encodeField(2, [0x62])]),
].map((answer) => Buffer.from(answer));
const dish_fields = [1, 2, 3, 5, 1001, 1002, 1004, 1005, 1007, 1008, 1014, 1015, 1017, 1024, 2004, 2006];

function pushed(text: string): Buffer {
  return frameBytes({ command: 33, id: 250, status: 200, class: classes.reply, payload: Buffer.from(text) });
}

export const deviceTargets: readonly Target[] = [
  {
    name: 'mavlink-datagram',
    read: (input) => parseDatagram(input, sink),
    allows: never,
    seeds: [Buffer.concat(frames), ...frames],
    dictionary: ['\u00fd', '\u00fe', '\u00fd\u0009\u0000\u0000'],
    bytes_max: 2_048,
  },
  {
    name: 'mavlink-stream',
    read: (input) => {
      const framer = new StreamFramer(sink);
      const cut = (input[0] ?? 0) % Math.max(1, input.length);
      framer.push(Buffer.from(input.subarray(0, cut)));
      framer.push(Buffer.from(input.subarray(cut)));
      framer.stalled();
    },
    allows: never,
    seeds: [Buffer.concat(frames)],
    dictionary: ['\u00fd', '\u00fe'],
    bytes_max: 2_048,
  },
  {
    name: 'soap',
    read: (input) => readEnvelope(input.toString()),
    allows: never,
    seeds: [soap, soap.replace('A &amp; B', '<![CDATA[</a>]]><!-- <x> -->'), empty_pull],
    dictionary: [
      '<',
      '>',
      '/>',
      '</',
      '<!--',
      '-->',
      '<![CDATA[',
      ']]>',
      '<!DOCTYPE',
      '<!ENTITY',
      '&amp;',
      '&#x0;',
      '&',
      '="',
      ' xmlns:a="',
      ' ',
    ],
    bytes_max,
    make: xml(soap_names, soap_values),
  },
  {
    name: 'ws-discovery',
    read: (input) => readMatches(input.toString(), 'urn', '192.0.2.1'),
    allows: never,
    seeds: [match],
    dictionary: ['<d:ProbeMatch>', '<XAddrs>', '</XAddrs>', 'http://', '[::1]', '@', '%', ' '],
    bytes_max,
  },
  {
    name: 'vendorcam',
    read: (input) => readReplies(input.toString()),
    allows: unreachable,
    seeds: [
      '[{"cmd":"GetDevInfo","code":0,"value":{"DevInfo":{"model":"X"}}}]',
      '[{"cmd":"Login","code":1,"error":{"rspCode":-7}}]',
    ],
    dictionary: json_tokens,
    bytes_max,
  },
  {
    name: 'vendorcam-push',
    read: (input) => {
      const cut = (input[0] ?? 0) % Math.max(1, input.length);
      const reader = new FrameReader(4_096);
      const frames = [...reader.take(input.subarray(0, cut)), ...reader.take(input.subarray(cut))];
      for (const text of [...frames.map((frame) => textIn(frame, push_key) ?? ''), input.toString()]) {
        reportsIn(text);
        nonceIn(text);
      }
    },
    allows: unreachable,
    seeds: [pushed(alarms), Buffer.concat([pushed(alarms), pushed('')]), alarms],
    dictionary: [
      '<AlarmEvent>',
      '</AlarmEvent>',
      '<channelId>',
      '<nonce>',
      '</',
      '/>',
      '<?',
      '<!',
      '>',
      'MD',
      '\u00f0\u00de\u00bc\u000a',
    ],
    bytes_max,
  },
  {
    name: 'ubus',
    read: (input) => {
      const text = input.toString();
      isBatchRefused(text);
      listIn(text);
      return answersIn(text, 1);
    },
    allows: unreachable,
    seeds: [
      '{"jsonrpc":"2.0","id":1,"result":[0,{"ubus_rpc_session":"a"}]}',
      '{"jsonrpc":"2.0","id":1,"error":{"code":-32002}}',
    ],
    dictionary: json_tokens,
    bytes_max,
  },
  {
    name: 'ubus-grants',
    read: (input) => readGrants(jsonOf(input)),
    allows: never,
    seeds: ['{"acls":{"ubus":{"system":["board"]},"uci":{"*":["read"]}}}'],
    dictionary: [...json_tokens, '"acls":', '"ubus":', '"*"'],
    bytes_max,
  },
  {
    name: 'gpsd',
    read: (input) => readTpv(input.toString()),
    allows: never,
    seeds: [
      '{"class":"TPV","device":"/dev/ttyACM0","mode":3,"time":"2026-11-21T10:00:00.000Z","lat":47.3,"lon":8.5,"altHAE":488}',
    ],
    dictionary: [...json_tokens, '"class":"TPV"', '"mode":', '"lat":', '"time":'],
    bytes_max,
  },
  {
    name: 'nut',
    read: (input) => {
      const words = wordsOf(input.toString());
      return readingOf(
        new Map([
          ['ups.status', words[0] ?? ''],
          ['battery.charge', words[1] ?? ''],
          ['battery.runtime', words[2] ?? ''],
        ]),
      );
    },
    allows: never,
    seeds: ['"OL CHRG" 95 1200', 'VAR ups battery.charge "42"'],
    dictionary: ['"', '\\', 'OL', 'OB', 'LB', 'WAIT', 'CHRG'],
    bytes_max,
  },
  {
    name: 'starlink',
    read: (input) => {
      parseStatus(input);
      parseHistory(input);
      parseRefusal(input);
      return parseLocation(input);
    },
    allows: unreachable,
    seeds: dish_answers,
    dictionary: [
      '\u00a2\u007d',
      '\u00b2\u007d',
      '\u00ca\u003f',
      '\u000a',
      '\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u0001',
    ],
    bytes_max: 8_192,
    make: protobuf(dish_fields),
  },
];

function jsonOf(input: Buffer): unknown {
  try {
    return JSON.parse(input.toString());
  } catch {
    return undefined;
  }
}
