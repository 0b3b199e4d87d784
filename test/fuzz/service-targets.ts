/** What clients of the kit and of the service send, and what operators hand over: requests, cursors, plans, maps, texts. */
import { EventEmitter, once } from 'node:events';
import { Readable } from 'node:stream';
import { z } from 'zod';
import { readPlan, fenceOf } from '../../drivers/mavlink/missions/plan.ts';
import { readEnvelope } from '../../drivers/onvif/soap/envelope.ts';
import { notesOf } from '../../drivers/onvif/events/topics.ts';
import { countValues, readJson, request_limits } from '../../src/contract/bounded-json.ts';
import { jsonObject } from '../../src/contract/json.ts';
import { expectPicture } from '../../src/toolkit/device/pictures/picture.ts';
import { DeviceUnreachable } from '../../src/platform/errors.ts';
import type { LocalApi } from '../../src/kit/local/api.ts';
import { answerBy } from '../../src/kit/local/exchange.ts';
import { localRoutes, refusal } from '../../src/kit/local/server.ts';
import { cleanTexts, printable } from '../../src/platform/foreign-text.ts';
import { withoutSecrets } from '../../src/platform/log/secrets.ts';
import { clientFrame, fleetClientFrame } from '../../src/cloud/api/frames.ts';
import { payloadFaults } from '../../src/cloud/api/payload.ts';
import { RequestProblem } from '../../src/cloud/api/problem.ts';
import * as requests from '../../src/cloud/api/requests.ts';
import { cursorAfter, readCursor } from '../../src/cloud/history/reading/cursor.ts';
import { readCursor as readTaskCursor } from '../../src/cloud/task-pages.ts';
import { changeWebhook, createWebhook } from '../../src/cloud/api/webhook-resources.ts';
import { hasCookieOnly } from '../../src/cloud/access/gate.ts';
import { readRange } from '../../src/cloud/http/ranges.ts';
import * as queries from '../../src/cloud/http/history/query.ts';
import { header_bytes, readHeader, readMetadata } from '../../src/cloud/map/pmtiles.ts';
import { kit_id } from '../support/contract-samples.ts';
import type { Target } from './engine.ts';
import { xml } from './structures.ts';

const never = (): boolean => false;
const isError = (error: unknown): boolean => error instanceof Error && error.constructor === Error;
const is_no_json = (error: unknown): boolean => error instanceof SyntaxError || error instanceof RangeError;
const json_tokens = ['{', '}', '[', ']', ',', ':', '"', 'null', '1e400', '\\ud800', '"__proto__":', '\u202e'];

/** What each answers does not matter here: the daemon behind the socket is not what is attacked. */
const answered = async (): Promise<never> => ({}) as never;
const api: LocalApi = {
  report: async () => ({ assets: [{ id: kit_id, key: 'sim:drone', name: 'Quadrotor 1' }] }) as never,
  tail: () => () => undefined,
  health: answered,
  buffer: answered,
  quarantine: answered,
  quarantined: answered,
  retryQuarantined: answered,
  discardQuarantined: answered,
  dispatch: answered,
  tasks: answered,
  task: answered,
  commands: () => [],
  forgetAsset: () => ({}) as never,
  logLevels: () => ({}) as never,
  recentLog: () => [],
  changeLogLevels: () => ({}) as never,
};
const answer = answerBy(localRoutes(api, AbortSignal.abort()), refusal);

/** The end of a response, as far as it is written to. */
class Ending extends EventEmitter {
  writableLength = 0;

  writeHead(): this {
    return this;
  }

  write(): boolean {
    return true;
  }

  end(): void {
    this.emit('close');
  }

  destroy(): void {
    this.emit('close');
  }
}

/** The first line is method and path, the rest the body. */
async function askDaemon(input: Buffer): Promise<void> {
  const line_end = input.indexOf('\n');
  const [method = '', url = ''] = input
    .toString('utf8', 0, line_end < 0 ? input.length : line_end)
    .split(' ');
  const request = Object.assign(Readable.from([input.subarray(line_end + 1)]), { method, url, socket: null });
  const response = new Ending();
  const closed = once(response, 'close');
  answer(request as never, response as never);
  await closed;
}

const bodies: readonly z.ZodType[] = [
  requests.createAsset,
  requests.changeAsset,
  requests.sendCommand,
  requests.pushLocation,
  requests.pushLocations,
  requests.openSession,
  createWebhook,
  changeWebhook,
];
const query_schemas: readonly z.ZodType[] = [
  queries.historyQuery,
  queries.eventQuery,
  queries.fleetEventQuery,
  queries.seriesQuery,
  queries.trackQuery,
  queries.exportQuery,
  queries.eraseQuery,
];

const event_names = [
  'w:Notify',
  'w:PullMessagesResponse',
  'w:NotificationMessage',
  'w:Topic',
  'w:Message',
  't:Message',
  't:Source',
  't:Data',
  't:SimpleItem',
  'Name',
  'Value',
  'UtcTime',
  'PropertyOperation',
  't:ElementItem',
];
const event_values = [
  'IsMotion',
  'State',
  'Rule',
  'true',
  '1',
  '',
  'Initialized',
  'Deleted',
  '2026-11-21T10:00:00Z',
  'tns1:RuleEngine/CellMotionDetector/Motion',
  'tns1:VideoSource/Tamper',
  'tns1:Device/Trigger/DigitalInput',
];

const place = { time_ms: 1, epoch: 1, seq: 1, channel: 'telemetry' };
const point = {
  type: 'SimpleItem',
  command: 16,
  frame: 3,
  params: [0, 0, 0, null, 47.1, 8.2, 30],
  autoContinue: true,
};
const plan = {
  fileType: 'Plan',
  version: 1,
  mission: {
    version: 2,
    items: [point, { ...point, command: 177, params: [1, 2, 0, 0, 0, 0, 0], doJumpId: 1 }],
  },
  geoFence: {
    version: 2,
    polygons: [
      {
        inclusion: true,
        polygon: [
          [47, 8],
          [47, 9],
          [48, 9],
        ],
      },
    ],
    circles: [{ inclusion: false, circle: { center: [47, 8], radius: 50 } }],
    breachReturn: [47, 8, 30],
  },
  rallyPoints: { version: 2, points: [[47, 8, 30]] },
};

export const serviceTargets: readonly Target[] = [
  {
    name: 'control-socket',
    read: askDaemon,
    allows: never,
    seeds: [
      'GET /tail?asset=Quadrotor%201&feed=gps\n',
      'GET /buffer/quarantine/7\n',
      'POST /buffer/quarantine/retry\n{"ids":[1,2]}',
      'POST /assets/forget\n{"asset":"Quadrotor 2"}',
      'POST /tasks\n{"asset":"sim:drone","command":"arm","payload":{},"deadline_s":5}',
      'POST /log-levels\n{"changes":[{"name":"mavlink","level":"debug"}],"for_s":60}',
    ],
    dictionary: [...json_tokens, 'GET ', 'POST ', '/tasks', '/tail?', '%', '%00', '&', '"ids":'],
    bytes_max: 32 * 1024,
  },
  {
    name: 'rest-bodies',
    // One schema for each input, as each route has one.
    read: (input) => {
      const text = input.toString();
      countValues(text, request_limits);
      return bodies[input.length % bodies.length]?.safeParse(readJson(text, request_limits));
    },
    allows: is_no_json,
    seeds: [
      '{"name":"Tractor","type":"vehicle","metadata":{"a":[1]},"parent_id":"3f0c1f6e-52a4-4c0e-9d6b-1f2a7c9e4b10"}',
      '{"lat":47.1,"lon":8.2,"alt_m":400,"timestamp":"2026-11-21T10:00:00Z"}',
      '{"url":"https://example.com/hook","events":["task.ended"],"description":"x"}',
    ],
    dictionary: [...json_tokens, '"lat":', '"name":', '"payload":', '"url":', '"events":', 'http://', '@'],
    bytes_max: 64 * 1024,
  },
  {
    name: 'socket-requests',
    read: (input) => {
      const frame = readJson(input.toString(), request_limits);
      return [clientFrame.safeParse(frame), fleetClientFrame.safeParse(frame)];
    },
    allows: is_no_json,
    seeds: [
      '{"type":"auth","api_key":"k"}',
      `{"type":"subscribe","summaries":true,"kits":["${kit_id}"],"assets":"*"}`,
      '{"type":"ping"}',
    ],
    dictionary: [...json_tokens, '"type":', '"subscribe"', '"assets":', '"*"', '"kits":'],
    bytes_max: 64 * 1024,
  },
  {
    name: 'command-payload',
    // A kit names the schema of its command, and a client sends what has to match it.
    read: (input) => {
      const value = readJson(input, request_limits);
      const pair = z.tuple([jsonObject, jsonObject]).safeParse(value);
      return pair.success && payloadFaults(...pair.data);
    },
    allows: is_no_json,
    seeds: [
      '[{"type":"object","properties":{"lat":{"type":"number","minimum":-90,"maximum":90},"mode":{"type":"string","enum":["a"],"maxLength":9}},"required":["lat"],"additionalProperties":false},{"lat":1,"mode":"a"}]',
      '[{"type":"object","properties":{"on":{"anyOf":[{"type":"boolean"},{"type":"integer","const":1}]}}},{"on":true}]',
    ],
    dictionary: [
      ...json_tokens,
      '"type":',
      '"properties":',
      '"anyOf":',
      '"oneOf":',
      '"pattern":"(a+)+$"',
      '"$ref":"#"',
      '"const":',
      '"multipleOf":',
    ],
    bytes_max: 16 * 1024,
  },
  {
    name: 'queries',
    read: (input) => {
      const text = input.toString('latin1');
      readRange(text, 10_000);
      readTaskCursor(text);
      hasCookieOnly({ cookie: text });
      const query = Object.fromEntries(new URLSearchParams(text));
      query_schemas[input.length % query_schemas.length]?.safeParse(query);
      return readCursor({ a: 1 }, text);
    },
    allows: (error) => error instanceof RequestProblem,
    seeds: [
      'bytes=0-99',
      'kit_session=abc; other=1',
      'from=2026-11-21T10:00:00Z&to=2026-11-21T11:00:00Z&limit=5&order=asc&select=battery.percent,gps.lat&points=100&bucket_s=60',
      'types=motion,task&assets=a,b&cursor=x',
      cursorAfter({ a: 1 }, place),
      Buffer.from(`1795255200000.${kit_id}`).toString('base64url'),
    ],
    dictionary: [
      'bytes=',
      '-',
      '=',
      '&',
      ';',
      'kit_session=',
      'cursor=',
      'from=',
      'select=',
      '%00',
      ',',
      'MS4',
      'WzEs',
    ],
    bytes_max: 8 * 1024,
  },
  {
    name: 'pmtiles',
    read: async (input) => {
      const header = readHeader(input);
      return readMetadata(header, async () => input.subarray(header_bytes));
    },
    allows: isError,
    seeds: [pmtiles(1), pmtiles(0)],
    dictionary: ['PMTiles\u0003', '{"name":', '"vector_layers":[', '{"id":"a"}'],
    bytes_max: 4 * 1024,
  },
  {
    name: 'plan',
    read: (input) => {
      const read = jsonObject.safeParse(readJson(input, request_limits));
      if (!read.success) return undefined;
      for (const kind of ['mission', 'fence', 'rally'] as const) {
        const found = readPlan(read.data, kind, input.length % 2 === 0 ? 'px4' : 'ardupilot');
        if ('items' in found && kind === 'fence') fenceOf(found.items.map(({ item }) => item));
      }
      return undefined;
    },
    allows: is_no_json,
    seeds: [JSON.stringify(plan)],
    dictionary: [
      ...json_tokens,
      '"items":',
      '"params":',
      '"doJumpId":',
      '"command":177',
      '"polygon":',
      '"center":',
    ],
    bytes_max: 32 * 1024,
  },
  {
    name: 'onvif-events',
    read: (input) => {
      const reading = readEnvelope(input.toString());
      return 'body' in reading ? notesOf(reading.body) : undefined;
    },
    allows: never,
    seeds: [
      `<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"><s:Body><w:Notify><w:NotificationMessage><w:Topic>tns1:RuleEngine/CellMotionDetector/Motion</w:Topic>
<w:Message><t:Message UtcTime="2026-11-21T10:00:00Z" PropertyOperation="Changed"><t:Source><t:SimpleItem Name="Rule" Value="R"/></t:Source>
<t:Data><t:SimpleItem Name="IsMotion" Value="true"/></t:Data></t:Message></w:Message></w:NotificationMessage></w:Notify></s:Body></s:Envelope>`,
    ],
    dictionary: [
      '<w:NotificationMessage>',
      '<w:Topic>',
      '<t:SimpleItem Name="State" Value="1"/>',
      'VideoSource/Tamper',
      '</',
      '/>',
      '<!--',
      '<![CDATA[',
    ],
    bytes_max: 32 * 1024,
    make: xml(event_names, event_values),
  },
  {
    name: 'texts',
    read: (input) => {
      const text = input.toString();
      withoutSecrets(text);
      printable(text);
      return cleanTexts({ [text.slice(0, 9)]: [text] });
    },
    allows: never,
    seeds: [
      'rtsp://user:pa@ss/word@192.0.2.1/live password="x" Bearer abcdefgh',
      '\u001b]52;c;x\u0007\u009b2J\u202etxt.exe',
    ],
    dictionary: [
      'password=',
      'authorization: ',
      '<wsse:Password>',
      '://',
      '@',
      ':',
      '\u001b[',
      '"',
      "'",
      '\u202e'.normalize(),
    ],
    bytes_max: 16 * 1024,
  },
  {
    name: 'picture',
    read: (input) => expectPicture(input, input.toString('latin1', 0, 20)),
    allows: (error) => error instanceof DeviceUnreachable,
    seeds: [Buffer.from('ffd8ffe000104a46494600ffd9', 'hex')],
    dictionary: ['\u00ff\u00d8\u00ff', '\u00ff\u00d9'],
    bytes_max: 8 * 1024,
  },
];

/** An archive without tiles; `compression` of its metadata as in section 3.2. */
function pmtiles(compression: number): Buffer {
  const header = Buffer.alloc(header_bytes);
  const metadata = Buffer.from('{"name":"Area","vector_layers":[{"id":"roads"}]}');
  header.write('PMTiles', 'latin1');
  header[7] = 3;
  header.writeBigUInt64LE(BigInt(header_bytes), 24);
  header.writeBigUInt64LE(BigInt(metadata.length), 32);
  header[97] = compression;
  return Buffer.concat([header, metadata]);
}
