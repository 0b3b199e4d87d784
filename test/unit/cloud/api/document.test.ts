/** What clients and tools read from the OpenAPI document of the service. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { expect, it } from 'vitest';
import { examples } from '../../../../src/cloud/api/examples.ts';
import { apiDocument } from '../../../../src/cloud/http/document.ts';
import { apiApp } from '../../../support/service/api-app.ts';
import { webhookTypes } from '../../../../src/cloud/api/webhook-resources.ts';

interface Content {
  readonly schema: object;
  readonly example?: unknown;
}
interface Operation {
  readonly operationId?: string;
  readonly summary?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly requestBody?: { readonly content: Record<string, Content> };
  readonly responses: Record<
    string,
    { readonly headers?: Record<string, unknown>; readonly content?: Record<string, Content> }
  >;
}
interface Document {
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Record<string, Record<string, Operation>>;
  readonly webhooks: Record<string, Record<string, Operation>>;
  readonly components: { readonly schemas: Record<string, object> };
}

const document = (await apiDocument(apiApp(), '1.2.3')) as unknown as Document;
const operations = Object.entries({ ...document.paths, ...document.webhooks }).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ name: `${method} ${path}`, ...operation })),
);

it.each(operations)('$name has an id, texts, a tag, and examples that its schemas accept', (operation) => {
  const { operationId, summary, description, tags, requestBody, responses } = operation;
  expect(operationId).toMatch(/^[a-z][A-Za-z]+$/u);
  expect([summary, description, ...(tags ?? [])].every((text) => (text ?? '').length > 3)).toBe(true);
  expect(tags).toHaveLength(1);
  const ajv = new Ajv2020({ strict: false });
  formats.default(ajv);
  ajv.addSchema({ $id: 'api', components: document.components });
  const contents = [requestBody, ...Object.values(responses)].flatMap((each) =>
    Object.values(each?.content ?? {}),
  );
  for (const { schema, example } of contents) {
    expect(example).toBeDefined();
    const absolute = JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"api#/')) as object;
    expect(ajv.validate(absolute, example) ? [] : ajv.errors).toEqual([]);
  }
});

it('describes the delivery of each type of event', () => {
  expect(Object.keys(document.webhooks).sort()).toEqual([...webhookTypes].sort());
});

it('gives each operation a separate id', () => {
  const ids = operations.map(({ operationId }) => operationId);
  expect(ids.length).toBeGreaterThan(25);
  expect(new Set(ids).size).toBe(ids.length);
});

it('names the schemas of the interface', () => {
  expect(Object.keys(document.components.schemas)).toEqual(
    expect.arrayContaining(
      'Kit KitTelemetry Location Link Usage Gateway Client Speedtest Asset Command Task Problem'.split(' '),
    ),
  );
});

it('allows further fields in responses and in what is pushed, and none in orders', () => {
  const { schemas } = document.components;
  expect(JSON.stringify(schemas['SendCommand'])).toContain('"additionalProperties":false');
  expect(
    JSON.stringify(
      ['Kit', 'Link', 'Task', 'Problem', 'CreateAsset', 'PushLocation'].map((name) => schemas[name]),
    ),
  ).not.toContain('"additionalProperties":false');
});

it('documents the headers of responses', () => {
  const { paths } = document;
  const sent = paths['/api/kits/{kit_id}/assets/{asset_id}/commands/{command_name}']?.['post']?.responses;
  expect(Object.keys(sent?.['202']?.headers ?? {})).toEqual(['Location']);
  for (const status of ['429', '503']) expect(sent?.[status]?.headers).toHaveProperty('Retry-After');
  expect(sent?.['401']?.headers).toHaveProperty('WWW-Authenticate');
});

/** What OpenAPI 3.0 lacks and converters leave as it is (typia#2300, zod-openapi#554, oapi-codegen#2218): generators of Go and Rust refuse it. */
it('has nothing that cannot be turned into OpenAPI 3.0', () => {
  const faults: string[] = [];
  const visit = (value: unknown, path: string): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const [key, inner] of Object.entries(value)) {
      if (!path.endsWith('/properties') && isOnlyLater(key, inner)) faults.push(`${path}/${key}`);
      if (key !== 'example') visit(inner, `${path}/${key}`);
    }
  };
  visit(document.components.schemas, '');
  for (const [path, methods] of Object.entries(document.paths)) visit(methods, path);
  expect(faults).toEqual([]);
});
const only_later =
  /^(?:prefixItems|patternProperties|propertyNames|contains|if|then|else|dependentSchemas|unevaluatedProperties|\$defs)$/u;
function isOnlyLater(key: string, value: unknown): boolean {
  if (key.startsWith('exclusive')) return typeof value === 'number';
  if (key !== 'type') return only_later.test(key);
  const types = [value].flat().filter((each) => typeof each === 'string' && each !== 'null');
  return typeof value !== 'object' ? value === 'null' : types.length > 1;
}

/** Without it generators of Go, C# and Java make 32 bits: their clients fail at a file of 3 GB (pulp/pulpcore#3590, MHSanaei/3x-ui#5907). */
it('gives integers that may pass 32 bits a format', () => {
  const faults: string[] = [];
  const visit = (value: unknown, path: string): void => {
    if (typeof value !== 'object' || value === null) return;
    const { type, maximum = Infinity, format } = value as Record<string, unknown>;
    const isInteger = [type].flat().includes('integer');
    if (isInteger && Number(maximum) >= 2 ** 31 && format !== 'int64') faults.push(path);
    for (const [key, inner] of Object.entries(value)) if (key !== 'example') visit(inner, `${path}/${key}`);
  };
  visit(document, '');
  expect(faults).toEqual([]);
  expect(document.components.schemas['File']).toMatchObject({ properties: { bytes: { format: 'int64' } } });
});

it('names the server that serves it', () => {
  expect(document.servers.map(({ url }) => url)).toEqual(['/']);
});

it('has examples that the service would accept and send', () => {
  expect(examples.size).toBeGreaterThan(20);
  for (const [schema, example] of examples) expect(schema.parse(example)).toEqual(example);
});

it('is built in turns, so that a first request for it delays no other request', async () => {
  let turns = 0;
  let built = false;
  const count = (): void => {
    turns += 1;
    if (!built) setImmediate(count);
  };
  setImmediate(count);
  await apiDocument(apiApp(), '1.2.3');
  built = true;
  expect(turns).toBeGreaterThan(Object.keys(document.paths).length);
});
