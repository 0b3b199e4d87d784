/** Builds the AsyncAPI 3.0 document of the contract from its schemas, as seen from the connector: it sends up and receives down. */
import { z } from 'zod';
import { channelSpecs, type ChannelSpec, type MessageSpec } from './channels.ts';
import { envelopeOf } from '../envelope.ts';
import { json, jsonObject, type JsonObject } from '../json.ts';
import { laneRules } from '../lanes.ts';
import { channels, contract_version, upTopic } from '../topics.ts';

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
  feed: 'name of the feed; selects the message type',
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
