/** Builds the AsyncAPI 3.0 document of the contract from its schemas, as seen from the connector: it sends up and receives down. */
import { z } from 'zod';
import { envelopeOf } from '../envelope.ts';
import { json, jsonObject, type JsonObject } from '../json.ts';
import { laneRules, type Lane } from '../lanes.ts';
import { channels, contract_version, upTopic, downTopic, type Down } from '../topics.ts';
import { announcement, commandList, roster } from '../assets.ts';
import { batch } from '../batch/batch.ts';
import { dropReport } from '../drops.ts';
import { edgeEvents, laneOfFeed, publishedFeeds, type FeedSet } from '../feeds.ts';
import { fileAnswer, fileReport } from '../files.ts';
import { kitTelemetry } from '../kit.ts';
import { partnerChange, partnerRecord } from '../partners.ts';
import { kitState } from '../presence.ts';
import { whepAnswer, whepRequest } from '../whep.ts';
import { cloudAck, kitConfig, syncRequest, taskCancel, taskDispatch, taskReport } from '../tasks.ts';

const binding_version = '0.2.0';

/** Duties of a receiver that no schema can express. */
const rules = {
  'x-dedup-key': '(kit_id, epoch, seq); for task reports also (task_id, revision)',
  'x-order':
    'Messages arrive in any order. A latest value is replaced only by one with a greater (epoch, seq); the time of day never decides.',
  'x-history': 'A batch with historical true fills history only.',
  'x-gaps':
    'Live messages overtake the backlog, so gaps in seq are legal for a while; what will never come is named on drops.',
  'x-unknown': 'Ignore keys, feeds and topics that you do not know: minor versions add them.',
} as const;

/** The document, ready for `JSON.stringify`. */
export function asyncApi(): JsonObject {
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'kit-connector',
      version: contract_version,
      description:
        'What a field kit publishes about itself and its assets over MQTT, and what it takes from the cloud. The rules behind it are in README.md beside this document.',
    },
    defaultContentType: 'application/json',
    servers: { broker: server() },
    channels: Object.fromEntries(channelSpecs.map((spec) => [spec.name, channel(spec)])),
    operations: Object.fromEntries(channelSpecs.map((spec) => [operationName(spec), operation(spec)])),
    components: {
      messages: Object.fromEntries(allMessages().map((spec) => [spec.name, message(spec)])),
      schemas: Object.fromEntries(allMessages().flatMap(schemas)),
    },
    ...rules,
  };
}

function allMessages(): MessageSpec[] {
  return channelSpecs.flatMap(({ messages }) => messages);
}

function server(): JsonObject {
  return {
    host: '{host}:{port}',
    protocol: 'secure-mqtt',
    protocolVersion: '5',
    description:
      'Any broker with MQTT 5 or 3.1.1. User name and client id are the kit_id; the kit may write k1/{kit_id}/up/# and read k1/{kit_id}/down/#, nothing else.',
    variables: { host: { description: 'host of the broker' }, port: { default: '8883' } },
    bindings: {
      mqtt: {
        clientId: '{kit_id}',
        cleanSession: false,
        lastWill: {
          topic: upTopic('{kit_id}', channels.state),
          qos: 1,
          retain: true,
          message: 'kitState with online false',
        },
        bindingVersion: binding_version,
      },
    },
  };
}

function channel({ address, summary, lane, messages }: ChannelSpec): JsonObject {
  return {
    address,
    summary,
    parameters: parameters(address, messages),
    messages: Object.fromEntries(messages.map(({ name }) => [name, ref(`components/messages/${name}`)])),
    ...(lane && { 'x-lane': lane, 'x-durability': laneRules[lane].durability }),
  };
}

const parameterNotes: Readonly<Record<string, string>> = {
  kit_id: 'UUID of the kit',
  asset_id: 'UUIDv5 of asset_key in the namespace kit_id',
  task_id: 'UUID of the task',
  file_id: 'UUID of the file',
  feed: 'name of the feed; selects the message type',
  id: 'UUID of the viewer',
};

function parameters(address: string, messages: readonly MessageSpec[]): JsonObject {
  const names = [...address.matchAll(/\{(\w+)\}/gu)].map((match) => match[1] ?? '');
  const feeds = [...new Set(messages.flatMap(({ feed }) => feed ?? []))];
  return Object.fromEntries(
    names.map((name) => [
      name,
      { description: parameterNotes[name] ?? name, ...(name === 'feed' && { enum: feeds }) },
    ]),
  );
}

function operationName({ name, direction }: ChannelSpec): string {
  return direction === 'up' ? `send_${name}` : name.replace('down', 'receive');
}

function operation({ name, direction, summary, retain, messages }: ChannelSpec): JsonObject {
  return {
    action: direction === 'up' ? 'send' : 'receive',
    channel: ref(`channels/${name}`),
    summary,
    messages: messages.map((spec) => ref(`channels/${name}/messages/${spec.name}`)),
    bindings: { mqtt: { qos: 1, retain, bindingVersion: binding_version } },
  };
}

function message({ name, summary, body, feed, empty }: MessageSpec): JsonObject {
  return {
    name,
    summary,
    contentType: body === 'deflated' ? 'application/zlib' : 'application/json',
    payload: ref(`components/schemas/${body === 'envelope' ? envelopeName(name) : name}`),
    ...(body === 'deflated' && { 'x-payload': 'schema of the JSON text once inflated (RFC 1950)' }),
    ...(feed && { 'x-feed': feed }),
    ...(empty && { 'x-empty-payload': empty }),
  };
}

const envelopeName = (name: string): string => `${name}Message`;

/** The schema of the data and the envelope that refers to it, so that generated code has a separate type for the data. */
function schemas({ name, schema, body }: MessageSpec): (readonly [string, JsonObject])[] {
  const data = [name, schemaOf(schema)] as const;
  if (body !== 'envelope') return [data];
  const envelope = schemaOf(envelopeOf(json));
  const properties = { ...jsonObject.parse(envelope['properties']), data: ref(`components/schemas/${name}`) };
  return [data, [envelopeName(name), { ...envelope, properties }]];
}

function ref(path: string): JsonObject {
  return { $ref: `#/${path}` };
}

/** JSON Schema draft-07, the dialect that AsyncAPI 3 extends. */
function schemaOf(schema: z.ZodType): JsonObject {
  const { $schema: _, ...plain } = z.toJSONSchema(schema, {
    target: 'draft-7',
    io: 'input',
    override: ({ jsonSchema }) => {
      // zod spells the formats out as long patterns; `format` says it, and only the time zone is left to say.
      if (jsonSchema.format === 'date-time') jsonSchema.pattern = 'Z$';
      else if (jsonSchema.format !== undefined) delete jsonSchema.pattern;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
    },
  });
  return jsonObject.parse(JSON.parse(JSON.stringify(plain)));
}

interface MessageSpec {
  readonly name: string;
  readonly summary: string;
  /** Of `data` for an envelope, else of the whole payload. */
  readonly schema: z.ZodType;
  /** `envelope`: JSON in an envelope. `bare`: JSON. `deflated`: JSON, compressed in zlib format. */
  readonly body: 'envelope' | 'bare' | 'deflated';
  /** On channels of feeds: the last level of the topic. */
  readonly feed?: string;
  /** What an empty payload means, where there may be one. */
  readonly empty?: string;
}

interface ChannelSpec {
  readonly name: string;
  readonly direction: 'up' | 'down';
  readonly address: string;
  readonly summary: string;
  readonly retain: boolean;
  /** Class of the messages in the outbox; those without one do not pass through it, or are carriers of such. */
  readonly lane?: Lane;
  readonly messages: readonly MessageSpec[];
}

const kit_id = '{kit_id}';
const asset_id = '{asset_id}';
const task_id = '{task_id}';
const file_id = '{file_id}';
const feed = '{feed}';

export const channelSpecs: readonly ChannelSpec[] = [
  up('state', 'Presence of the kit: birth at each connect, will, clean stop', {
    address: channels.state,
    retain: true,
    messages: [enveloped('kitState', 'Birth, will or clean stop', kitState)],
  }),
  up('telemetry', 'Parts of the telemetry of the kit that changed', {
    address: channels.telemetry,
    lane: 'kit',
    messages: [enveloped('kitTelemetry', 'Parts of telemetry', kitTelemetry)],
  }),
  up(
    'roster',
    'All assets of the kit: an announcement that is older and not named is of an asset that is gone',
    {
      address: channels.roster,
      lane: 'presence',
      messages: [enveloped('roster', 'Ids of all assets', roster)],
    },
  ),
  up('asset', 'What the connector knows of an asset', {
    address: channels.asset(asset_id),
    lane: 'presence',
    messages: [
      enveloped('announcement', 'An asset of the kit', announcement, forgets('the asset')),
      removal('assetRemoval', 'The asset is gone'),
    ],
  }),
  up('commands', 'The enabled commands of an asset', {
    address: channels.commands(asset_id),
    lane: 'presence',
    messages: [
      enveloped('commandList', 'All enabled commands', commandList, forgets('the list')),
      removal('commandsRemoval', 'The asset is gone, and its commands'),
    ],
  }),
  up('feed', 'Measurements of an asset, at the rate that the kit allows', {
    address: channels.feed(asset_id, feed),
    lane: 'feed',
    messages: feedMessages('feed'),
  }),
  up('event', 'Edges that are never thinned: motion, detections, status of cameras, assets and links', {
    address: channels.event(asset_id, feed),
    lane: 'alarm',
    messages: feedMessages('alarm'),
  }),
  up('task', 'Progress and result of a task', {
    address: channels.task(task_id),
    lane: 'task',
    messages: [enveloped('taskReport', 'A step of a task', taskReport)],
  }),
  up('batch', 'Many messages of the channels above in one: the backlog, and live messages on metered links', {
    address: channels.batch,
    messages: [{ name: 'batch', summary: 'Messages in columns', schema: batch, body: 'deflated' }],
  }),
  up('partner', 'What the kit has of a partner asset', {
    address: channels.partner(asset_id),
    lane: 'presence',
    messages: [
      enveloped('partnerRecord', 'A partner asset', partnerRecord, forgets('the asset')),
      removal('partnerRemoval', 'The partner asset is removed for good'),
    ],
  }),
  up('file', 'What became of a file that the kit keeps for the cloud', {
    address: channels.file(file_id),
    lane: 'alarm',
    messages: [enveloped('fileReport', 'A file and its state', fileReport)],
  }),
  up('drops', 'Messages that were dropped before delivery', {
    address: channels.drops,
    lane: 'task',
    messages: [enveloped('dropReport', 'Holes to expect', dropReport)],
  }),
  up('whep', 'The answer to the offer of a viewer; expires after 10 s, and is never buffered', {
    address: channels.whep('{id}'),
    messages: [bare('whepAnswer', 'SDP of the media server, or why there is none', whepAnswer)],
  }),
  down(
    { kind: 'task', task_id },
    'A task for an asset; never retained',
    bare('taskDispatch', 'A command with its payload and deadline', taskDispatch),
  ),
  down(
    { kind: 'cancel', task_id },
    'Cancels a waiting task, or a running task if its device can stop',
    bare('taskCancel', 'A wish to cancel', taskCancel, 'the same as {}'),
  ),
  down(
    { kind: 'ack' },
    'What the cloud has stored',
    bare('cloudAck', 'Ranges of sequence numbers', cloudAck),
  ),
  down(
    { kind: 'sync' },
    'Asks for everything retained again',
    bare('syncRequest', 'A wish', syncRequest, 'the same as {}'),
  ),
  down(
    { kind: 'partner', asset_id },
    'What the cloud has of a partner asset; never retained',
    bare('partnerChange', 'A partner asset with its newest fix, or its removal', partnerChange),
  ),
  down(
    { kind: 'file', file_id },
    'What the cloud wants of a file; never retained',
    bare('fileAnswer', 'A permit to upload it, an order, or its end', fileAnswer),
  ),
  down(
    { kind: 'whep' },
    'A viewer of the video of an asset; expires after 10 s, never retained',
    bare('whepRequest', 'SDP of a viewer, or its end', whepRequest),
  ),
  down(
    { kind: 'config' },
    'Rates and caps, bounded by the configuration of the kit',
    bare('kitConfig', 'Wishes; {} for none', kitConfig),
  ),
];

function up(
  name: string,
  summary: string,
  spec: Pick<ChannelSpec, 'address' | 'messages'> & { retain?: boolean; lane?: Lane },
): ChannelSpec {
  const { lane, retain = lane !== undefined && laneRules[lane].retain } = spec;
  return { ...spec, name, summary, direction: 'up', retain, address: upTopic(kit_id, spec.address) };
}

type Words = readonly [name: string, summary: string, schema: z.ZodType, empty?: string];

function enveloped(...words: Words): MessageSpec {
  return { ...bare(...words), body: 'envelope' };
}

function bare(...[name, summary, schema, empty]: Words): MessageSpec {
  return { name, summary, schema, body: 'bare', ...(empty !== undefined && { empty }) };
}

function forgets(what: string): string {
  return `follows the removal, so that the broker forgets ${what}`;
}

/** A removal has a stamp like every message; it is published without the retain flag. */
function removal(name: string, what: string): MessageSpec {
  return enveloped(name, `${what}: not retained, and directly followed by the empty payload`, z.null());
}

function down(to: Down, summary: string, message: MessageSpec): ChannelSpec {
  return {
    name: `down_${to.kind}`,
    direction: 'down',
    address: downTopic(kit_id, to),
    summary,
    retain: to.kind === 'ack' || to.kind === 'config',
    messages: [message],
  };
}

function feedMessages(lane: ReturnType<typeof laneOfFeed>): MessageSpec[] {
  const families: readonly (readonly [string, FeedSet])[] = [
    ...Object.entries(publishedFeeds),
    ['', edgeEvents],
  ];
  return families.flatMap(([kind, feeds]) =>
    Object.entries(feeds)
      .filter(([name]) => laneOfFeed(name) === lane)
      .map(([name, schema]) => feedMessage(kind, name, schema)),
  );
}

function feedMessage(kind: string, feed: string, schema: z.ZodType): MessageSpec {
  const summary = kind ? `Feed ${feed} of ${kind} assets` : `Change of ${feed.replace('_', ' ')}`;
  return { ...enveloped(camelCase(`${kind}_${feed}`), summary, schema), feed };
}

function camelCase(snake_case: string): string {
  const words = snake_case.split('_').filter((word) => word !== '');
  return words.map((word, at) => (at === 0 ? word : word.charAt(0).toUpperCase() + word.slice(1))).join('');
}
