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
  up('state', {
    address: channels.state,
    summary: 'Presence of the kit: birth at each connect, will, clean stop',
    retain: true,
    messages: [
      { name: 'kitState', summary: 'Birth, will or clean stop', schema: kitState, body: 'envelope' },
    ],
  }),
  up('telemetry', {
    address: channels.telemetry,
    summary: 'Parts of the telemetry of the kit that changed',
    lane: 'kit',
    messages: [
      { name: 'kitTelemetry', summary: 'Parts of telemetry', schema: kitTelemetry, body: 'envelope' },
    ],
  }),
  up('roster', {
    address: channels.roster,
    summary: 'All assets of the kit: an announcement that is older and not named is of an asset that is gone',
    retain: true,
    lane: 'presence',
    messages: [{ name: 'roster', summary: 'Ids of all assets', schema: roster, body: 'envelope' }],
  }),
  up('asset', {
    address: channels.asset(asset_id),
    summary: 'What the connector knows of an asset',
    retain: true,
    lane: 'presence',
    messages: [
      {
        name: 'announcement',
        summary: 'An asset of the kit',
        schema: announcement,
        body: 'envelope',
        empty: 'follows the removal, so that the broker forgets the asset',
      },
      removal('assetRemoval', 'The asset is gone'),
    ],
  }),
  up('commands', {
    address: channels.commands(asset_id),
    summary: 'The enabled commands of an asset',
    retain: true,
    lane: 'presence',
    messages: [
      {
        name: 'commandList',
        summary: 'All enabled commands',
        schema: commandList,
        body: 'envelope',
        empty: 'follows the removal, so that the broker forgets the list',
      },
      removal('commandsRemoval', 'The asset is gone, and its commands'),
    ],
  }),
  up('feed', {
    address: channels.feed(asset_id, feed),
    summary: 'Measurements of an asset, at the rate that the kit allows',
    lane: 'feed',
    messages: feedMessages('feed'),
  }),
  up('event', {
    address: channels.event(asset_id, feed),
    summary: 'Edges that are never thinned: motion, detections, status of cameras, assets and links',
    lane: 'alarm',
    messages: feedMessages('alarm'),
  }),
  up('task', {
    address: channels.task(task_id),
    summary: 'Progress and result of a task',
    lane: 'task',
    messages: [{ name: 'taskReport', summary: 'A step of a task', schema: taskReport, body: 'envelope' }],
  }),
  up('batch', {
    address: channels.batch,
    summary: 'Many messages of the channels above in one: the backlog, and live messages on metered links',
    messages: [{ name: 'batch', summary: 'Messages in columns', schema: batch, body: 'deflated' }],
  }),
  up('partner', {
    address: channels.partner(asset_id),
    summary: 'What the kit has of a partner asset',
    retain: true,
    lane: 'presence',
    messages: [
      {
        name: 'partnerRecord',
        summary: 'A partner asset',
        schema: partnerRecord,
        body: 'envelope',
        empty: 'follows the removal, so that the broker forgets the asset',
      },
      removal('partnerRemoval', 'The partner asset is removed for good'),
    ],
  }),
  up('file', {
    address: channels.file(file_id),
    summary: 'What became of a file that the kit keeps for the cloud',
    lane: 'alarm',
    messages: [{ name: 'fileReport', summary: 'A file and its state', schema: fileReport, body: 'envelope' }],
  }),
  up('drops', {
    address: channels.drops,
    summary: 'Messages that were dropped before delivery',
    lane: 'task',
    messages: [{ name: 'dropReport', summary: 'Holes to expect', schema: dropReport, body: 'envelope' }],
  }),
  up('whep', {
    address: channels.whep('{id}'),
    summary: 'The answer to the offer of a viewer; expires after 10 s, and is never buffered',
    messages: [
      {
        name: 'whepAnswer',
        summary: 'SDP of the media server, or why there is none',
        schema: whepAnswer,
        body: 'bare',
      },
    ],
  }),
  down({ kind: 'task', task_id }, 'A task for an asset; never retained', {
    name: 'taskDispatch',
    summary: 'A command with its payload and deadline',
    schema: taskDispatch,
  }),
  down({ kind: 'cancel', task_id }, 'Cancels a waiting task, or a running task if its device can stop', {
    name: 'taskCancel',
    summary: 'A wish to cancel',
    schema: taskCancel,
    empty: 'the same as {}',
  }),
  down({ kind: 'ack' }, 'What the cloud has stored', {
    name: 'cloudAck',
    summary: 'Ranges of sequence numbers',
    schema: cloudAck,
  }),
  down({ kind: 'sync' }, 'Asks for everything retained again', {
    name: 'syncRequest',
    summary: 'A wish',
    schema: syncRequest,
    empty: 'the same as {}',
  }),
  down({ kind: 'partner', asset_id }, 'What the cloud has of a partner asset; never retained', {
    name: 'partnerChange',
    summary: 'A partner asset with its newest fix, or its removal',
    schema: partnerChange,
  }),
  down({ kind: 'file', file_id }, 'What the cloud wants of a file; never retained', {
    name: 'fileAnswer',
    summary: 'A permit to upload it, an order, or its end',
    schema: fileAnswer,
  }),
  down({ kind: 'whep' }, 'A viewer of the video of an asset; expires after 10 s, never retained', {
    name: 'whepRequest',
    summary: 'SDP of a viewer, or its end',
    schema: whepRequest,
  }),
  down({ kind: 'config' }, 'Rates and caps, bounded by the configuration of the kit', {
    name: 'kitConfig',
    summary: 'Wishes; {} for none',
    schema: kitConfig,
  }),
];

function up(
  name: string,
  spec: Pick<ChannelSpec, 'address' | 'summary' | 'messages'> & { retain?: boolean; lane?: Lane },
): ChannelSpec {
  return { retain: false, ...spec, name, direction: 'up', address: upTopic(kit_id, spec.address) };
}

/** A removal has a stamp like every message; it is published without the retain flag. */
function removal(name: string, what: string): MessageSpec {
  return {
    name,
    summary: `${what}: not retained, and directly followed by the empty payload`,
    schema: z.null(),
    body: 'envelope',
  };
}

function down(to: Down, summary: string, message: Omit<MessageSpec, 'body'>): ChannelSpec {
  return {
    name: `down_${to.kind}`,
    direction: 'down',
    address: downTopic(kit_id, to),
    summary,
    retain: to.kind === 'ack' || to.kind === 'config',
    messages: [{ ...message, body: 'bare' }],
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
      .map(([name, schema]) => ({
        name: camelCase(`${kind}_${name}`),
        summary: kind ? `Feed ${name} of ${kind} assets` : `Change of ${name.replace('_', ' ')}`,
        schema,
        body: 'envelope',
        feed: name,
      })),
  );
}

function camelCase(snake_case: string): string {
  const words = snake_case.split('_').filter((word) => word !== '');
  return words.map((word, at) => (at === 0 ? word : word.charAt(0).toUpperCase() + word.slice(1))).join('');
}
