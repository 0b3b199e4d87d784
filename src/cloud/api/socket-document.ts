/** Builds the AsyncAPI 3.1 document of the service's WebSockets from the schemas of their frames. */
import { z } from 'zod';
import { type Json, json, type JsonObject, jsonObject } from '../../contract/json.ts';
import { clientFrame, closeCodes, fleetClientFrame, fleetServerFrame, serverFrame } from './frames.ts';
import { withoutLimits } from './open-schema.ts';
import { alarm } from './alarm-resources.ts';
import { fileResource } from './file-resources.ts';
import { asset, kit, queue, task } from './resources.ts';

/** These have a named schema in the document. */
const named = z.registry<{ id: string }>();
named.add(kit, { id: 'Kit' });
named.add(queue, { id: 'Queue' });
named.add(asset, { id: 'Asset' });
named.add(task, { id: 'Task' });
named.add(alarm, { id: 'Alarm' });
named.add(fileResource, { id: 'File' });

type Frames = readonly z.ZodObject<{ type: z.ZodLiteral<string> }>[];

interface Socket {
  readonly name: string;
  readonly address: string;
  readonly title: string;
  readonly description: string;
  readonly receives: Frames;
  readonly sends: Frames;
}

const rules = `One JSON object a frame. The key comes with the handshake (\`X-API-Key\`) or in the first frame, \`auth\`, within 5 s. \`seq\` rises by one with each
frame to this socket; after a gap, subscribe again. A slow reader gets the newest of each thing. Close codes: ${Object.entries(
  closeCodes,
)
  .map(([name, code]) => `${code} ${name.replaceAll('_', ' ')}`)
  .join(', ')}, 1013 try again later.`;

const sockets: readonly Socket[] = [
  {
    name: 'kit',
    address: '/api/kits/{kit_id}/ws',
    title: 'Changes of one kit',
    description: `A snapshot after \`subscribe\`, then what changes. ${rules}`,
    receives: clientFrame.options,
    sends: serverFrame.options,
  },
  {
    name: 'fleet',
    address: '/api/ws',
    title: 'Changes of many kits',
    description: `With \`summaries\`, the entries of List kits for all kits of the key, then the changed ones, at most one frame a second. With \`alarms\`, the alarms that are not closed, then those that change. With \`kits\`, the frames of those kits' own sockets, each with its \`kit_id\`. ${rules}`,
    receives: fleetClientFrame.options,
    sends: fleetServerFrame.options,
  },
];

/** Returns the document, ready for `JSON.stringify`. `version`: of the program. */
export function socketDocument(version: string): JsonObject {
  const schemas: Record<string, Json> = {};
  const messages: Record<string, Json> = {};
  const channels: Record<string, Json> = {};
  const operations: Record<string, Json> = {};
  for (const socket of sockets) {
    const received = messagesOf(socket, 'receives', { schemas, messages });
    const sent = messagesOf(socket, 'sends', { schemas, messages });
    channels[socket.name] = channelOf(socket, [...received, ...sent]);
    operations[`receive_${socket.name}`] = operationOf(socket, 'receive', received);
    operations[`send_${socket.name}`] = operationOf(socket, 'send', sent);
  }
  return {
    asyncapi: '3.1.0',
    info: {
      title: 'Kit, Asset and Telemetry Service: WebSockets',
      version,
      description:
        'What the service sends and receives over WebSockets. Ignore frames and fields that you do not know: later versions add some. `/openapi.json` describes the requests.',
      tags: [{ name: 'kits', description: 'Kits and their assets.' }],
      contact: { name: 'The maintainers of kit-connector' },
      license: { name: 'MIT', url: 'https://opensource.org/license/mit' },
    },
    defaultContentType: 'application/json',
    servers: {
      service: {
        host: '{host}',
        protocol: 'wss',
        description: 'The service that serves this document; `ws` where it serves plain HTTP.',
        variables: { host: { description: 'host and port of the service' } },
        security: [ref('components/securitySchemes/apiKey')],
      },
    },
    channels,
    operations,
    components: {
      securitySchemes: { apiKey: { type: 'httpApiKey', in: 'header', name: 'X-API-Key' } },
      messages,
      schemas,
    },
  };
}

interface Components {
  readonly schemas: Record<string, Json>;
  readonly messages: Record<string, Json>;
}

/** Adds the messages of one direction with their schemas; returns their names. */
function messagesOf(
  socket: Socket,
  direction: 'receives' | 'sends',
  { schemas, messages }: Components,
): readonly string[] {
  return socket[direction].map((frame) => {
    const type = frame.shape.type.value;
    const name = `${socket.name}_${direction === 'sends' ? '' : 'client_'}${type}`;
    const {
      $schema: _,
      definitions = {},
      ...schema
    } = jsonObject.parse(
      z.toJSONSchema(frame, {
        target: 'draft-7',
        io: direction === 'sends' ? 'output' : 'input',
        metadata: named,
        override: ({ jsonSchema }) => {
          if (jsonSchema.format !== undefined) delete jsonSchema.pattern;
        },
      }),
    );
    const open = direction === 'sends' ? withoutLimits : (value: Json): Json => value;
    const moved = (value: Json): Json =>
      json.parse(
        JSON.parse(JSON.stringify(open(value)).replaceAll('#/definitions/', '#/components/schemas/')),
      );
    for (const [id, each = null] of Object.entries(jsonObject.parse(definitions))) {
      const { $id: _id, id: _name, ...rest } = jsonObject.parse(moved(each));
      schemas[id] = rest;
    }
    schemas[name] = moved(schema);
    messages[name] = {
      name: type,
      title: `${type} of ${socket.address}`,
      contentType: 'application/json',
      payload: ref(`components/schemas/${name}`),
    };
    return name;
  });
}

function channelOf({ address, title, description }: Socket, messages: readonly string[]): JsonObject {
  return {
    address,
    title,
    description,
    ...(address.includes('{kit_id}') && { parameters: { kit_id: { description: 'id of the kit' } } }),
    messages: Object.fromEntries(messages.map((name) => [name, ref(`components/messages/${name}`)])),
    bindings: { ws: { method: 'GET', bindingVersion: '0.1.0' } },
  };
}

function operationOf(
  { name, title }: Socket,
  action: 'send' | 'receive',
  messages: readonly string[],
): JsonObject {
  return {
    action,
    channel: ref(`channels/${name}`),
    title: `${title}: ${action === 'send' ? 'what the service sends' : 'what clients send'}`,
    summary: title,
    description:
      action === 'send'
        ? 'Frames from the service, in the order of `seq`.'
        : 'Frames from the client, at most 20 a second.',
    messages: messages.map((each) => ref(`channels/${name}/messages/${each}`)),
  };
}

function ref(path: string): JsonObject {
  return { $ref: `#/${path}` };
}
