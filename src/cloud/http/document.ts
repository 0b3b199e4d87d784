/** Builds the OpenAPI 3.1 document of the service from its routes and from the deliveries of webhooks. */
import { OpenAPIHono } from '@hono/zod-openapi';
import { z } from 'zod';
import { json, type Json, type JsonObject, jsonObject } from '../../contract/json.ts';
import { turn } from '../../platform/time.ts';
import { convertible, withoutLimits } from '../api/open-schema.ts';
import { type Env, jsonBody } from './context.ts';
import { webhookBodies } from '../api/webhook-resources.ts';

const description = `Kits, the assets attached to them, their telemetry and their commands.

Every request below \`/api\` carries an API key in the header \`X-API-Key\`; a kit that the key does not have is 404. Times are ISO 8601 in UTC.
Errors are problem details (RFC 9457). Ignore fields, and take values of enumerations, that you do not know: later versions add some.

Changes come over WebSockets: \`/asyncapi.json\` describes their frames.`;

/** In the order of the alphabet, as linters want it. */
const tags = [
  { name: 'alarms', description: 'What needs a person, until it is over.' },
  { name: 'assets', description: 'Assets, their feeds, and the assets that partners register.' },
  { name: 'files', description: 'Files of kits: stills, flight logs and the like.' },
  { name: 'history', description: 'What kits reported in the past, and what is missing of it.' },
  { name: 'keys', description: 'API keys: who may do what.' },
  { name: 'kits', description: 'Kits, their telemetry and their WAN links.' },
  { name: 'maps', description: 'The map that the operator installed, for the console and other clients.' },
  { name: 'session', description: 'The rights of an API key, and the session of the console.' },
  { name: 'tasks', description: 'Commands of assets and the tasks that they become.' },
  { name: 'webhooks', description: 'Receivers of events, and deliveries that failed.' },
];

type Definitions = OpenAPIHono<Env>['openAPIRegistry']['definitions'];

/** Resolves with the document, ready for `JSON.stringify`. It is built route by route: all at once would hold up the kit. `version`: of the program. */
export async function apiDocument(app: OpenAPIHono<Env>, version: string): Promise<JsonObject> {
  const { definitions } = app.openAPIRegistry;
  const paths: Record<string, object> = {};
  const components: Record<string, object> = {};
  const add = (to: Record<string, object>, things: object = {}): void => {
    for (const [name, thing] of Object.entries<object>({ ...things })) to[name] = { ...to[name], ...thing };
  };
  for (const definition of definitions.filter(({ type }) => type === 'route')) {
    const part = partOf([definition], version);
    add(paths, part.paths);
    add(components, part.components);
    await turn();
  }
  const rest = partOf(
    definitions.filter(({ type }) => type !== 'route'),
    version,
  );
  add(components, rest.components);
  const document: unknown = JSON.parse(JSON.stringify({ ...rest, paths, components }));
  await turn();
  return jsonObject.parse(convertible(openResponses(jsonObject.parse(document))));
}

/** The document of these definitions alone. */
function partOf(definitions: Definitions, version: string): ReturnType<OpenAPIHono['getOpenAPI31Document']> {
  const part = new OpenAPIHono();
  for (const each of definitions) {
    if (each.type === 'route') part.openAPIRegistry.registerPath(each.route);
    else if (each.type === 'webhook') part.openAPIRegistry.registerWebhook(each.webhook);
    else if (each.type === 'component')
      part.openAPIRegistry.registerComponent(each.componentType, each.name, each.component);
  }
  return part.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: 'Kit, Asset and Telemetry Service',
      version,
      description,
      contact: { name: 'The maintainers of kit-connector' },
      license: { name: 'MIT', url: 'https://opensource.org/license/mit' },
    },
    servers: [{ url: '/', description: 'The service that serves this document.' }],
    security: [{ apiKey: [] }],
    tags,
  });
}

const schemaRef = /^#\/components\/schemas\/(\w+)$/u;
const documentShape = z.object({
  paths: z.record(z.string(), z.record(z.string(), z.looseObject({ requestBody: json.optional() }))),
  components: z.object({ schemas: z.record(z.string(), json) }),
});

/** Lets responses have further fields: a client made from this document must accept fields that later versions add. */
function openResponses(document: JsonObject): JsonObject {
  const { paths, components } = documentShape.parse(document);
  const bodies = Object.values(paths).flatMap((methods) =>
    Object.values(methods).flatMap(({ requestBody }) => requestBody ?? []),
  );
  const strict = new Set<string>();
  const follow = (value: Json): void => {
    for (const name of referencesIn(value)) {
      if (strict.has(name)) continue;
      strict.add(name);
      follow(components.schemas[name] ?? null);
    }
  };
  for (const body of bodies) follow(body);
  const schemas = Object.fromEntries(
    Object.entries(components.schemas).map(([name, schema]) => [
      name,
      strict.has(name) ? schema : withoutLimits(schema),
    ]),
  );
  return { ...document, components: { ...jsonObject.parse(document['components']), schemas } };
}

function referencesIn(value: Json): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, each = null]) => {
    const name = key === '$ref' && typeof each === 'string' ? schemaRef.exec(each)?.[1] : undefined;
    return name === undefined ? referencesIn(each) : [name];
  });
}

const headers = z.object({
  'webhook-id': z
    .string()
    .describe('the same at every attempt: ignore an id that was already received')
    .openapi({ example: 'msg_0aZ3kQ9xR1tY7uI5oP2sD4fG6hJ' }),
  'webhook-timestamp': z
    .string()
    .describe('of this attempt, seconds since 1970')
    .openapi({ example: '1795255200' }),
  'webhook-signature': z
    .string()
    .describe('`v1,` and HMAC-SHA256 of "id.timestamp.body" in base64; two for a day after a rotation')
    .openapi({ example: 'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=' }),
});

const deliveries = [
  {
    type: 'task.ended',
    operationId: 'taskEnded',
    summary: 'A task ended',
    description:
      'A task completed or failed; again when a late report replaces a failure without an answer. `data.task` is as Get a task returns it.',
  },
  {
    type: 'alarm',
    operationId: 'alarm',
    summary: 'An asset raised an alarm',
    description:
      'An event of an asset began or ended, such as motion. States that are repeated are none; events from the buffer of a kit have `late`.',
  },
  {
    type: 'file',
    operationId: 'file',
    summary: 'A file of a kit is here',
    description:
      'Its content came whole: `/api/kits/{kit_id}/files/{file_id}/content`. `data.file` is as Get a file returns it; with `alarms` it shows these.',
  },
  ...(
    [
      ['asset', 'An asset went offline or came back', 'What goes offline together is one alarm.'],
      ['link', 'A link went offline or came back', 'Not while the kit itself is offline.'],
      ['battery', 'The battery of a kit is low', 'It is below 20 %, or below 10 %, or charged again.'],
      [
        'queue',
        'Messages of a kit wait, or were lost',
        'Many wait on the kit, or some were dropped or refused.',
      ],
      ['kit.degraded', 'A kit is degraded', 'A degraded condition, or a lost position, began or ended.'],
    ] as const
  ).map(([type, summary, about]) => ({
    type,
    operationId: `${type.replace('kit.d', 'kitD')}Alarm`,
    summary,
    description: `${about} \`data.alarm\` is as List alarms returns it; alarms that are muted are not delivered.`,
  })),
  {
    type: 'kit.online',
    operationId: 'kitOnline',
    summary: 'A kit came online',
    description: 'The kit reported that it is connected, or a kit that had fallen silent sends again.',
  },
  {
    type: 'kit.offline',
    operationId: 'kitOffline',
    summary: 'A kit went offline',
    description:
      'The kit reported it, the broker lost its connection, or nothing came from it for 65 minutes (`reason`: `silent`).',
  },
] as const;

/** Adds the deliveries of webhooks (the section `webhooks` of the document). */
export function describeWebhooks(app: OpenAPIHono<Env>): void {
  for (const { type, ...about } of deliveries) {
    app.openAPIRegistry.registerWebhook({
      method: 'post',
      path: type,
      ...about,
      tags: ['webhooks'],
      security: [],
      request: { headers, body: jsonBody(webhookBodies[type]) },
      responses: {
        204: { description: 'taken; any status of 200 to 299 is a success' },
        410: { description: 'gone: the webhook is disabled' },
        '5XX': { description: 'not taken, as any other status: the delivery is repeated' },
      },
    });
  }
}
