/** Whatever is sent to the routes of the OpenAPI document, the answer is one that the document has, soon, and of one's own kits. */
import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { channels } from '../../../../src/contract/topics.ts';
import { asset_id, kit_id, samples, task_id } from '../../../support/contract-samples.ts';
import { type ServiceLab, startServiceLab } from '../../../support/service/service-lab.ts';

const schema = z.looseObject({ $ref: z.string().optional() });
const operation = z.looseObject({
  requestBody: z.object({ content: z.record(z.string(), z.object({ schema })) }).optional(),
  responses: z.record(z.string(), z.looseObject({ content: z.record(z.string(), schema).optional() })),
});
const document = z.looseObject({
  paths: z.record(z.string(), z.record(z.string(), operation)),
  components: z.looseObject({
    schemas: z.record(z.string(), z.looseObject({ properties: z.record(z.string(), schema).optional() })),
  }),
});

interface Route {
  readonly method: string;
  readonly path: string;
  /** Names of the fields of its body. */
  readonly fields: readonly string[];
  readonly responses: z.output<typeof operation>['responses'];
}

/** Each key may ask for a burst only, so the askers take turns. */
const keys_used = 40;
const answer_ms = 5_000;
const stranger_kit = '00000000-0000-4000-8000-000000000001';
const own_secret = 'Only the owner reads this';

let lab: ServiceLab;
let routes: readonly Route[];
let owners: readonly string[];
let strangers: readonly string[];

beforeAll(async () => {
  lab = await startServiceLab(kit_id);
  await lab.publish(channels.state, samples['kitState'] ?? {});
  await lab.publish(channels.telemetry, samples['kitTelemetry'] ?? {});
  await lab.publish(channels.asset(asset_id), { ...samples['announcement'], name: own_secret });
  await lab.publish(channels.commands(asset_id), samples['commandList'] ?? {});
  await lab.publish(channels.task(task_id), samples['taskReport'] ?? {});
  await lab.publish(channels.state, samples['kitState'] ?? {}, { kit: stranger_kit });
  const make = async (kits: readonly string[]) =>
    Promise.all(Array.from({ length: keys_used }, async () => lab.giveKey({ kits })));
  owners = await make([kit_id]);
  strangers = await make([stranger_kit]);
  const response = await fetch(`${lab.url}/openapi.json`);
  routes = routesOf(document.parse(await response.json()));
});
afterAll(async () => lab.stop());

function routesOf({ paths, components }: z.output<typeof document>): readonly Route[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { requestBody, responses }]) => {
      const name = (requestBody?.content['application/json']?.schema.$ref ?? '').split('/').at(-1) ?? '';
      const fields = Object.keys(components.schemas[name]?.properties ?? {});
      return { method: method.toUpperCase(), path, fields, responses };
    }),
  );
}

const ids: Readonly<Record<string, string>> = {
  kit_id,
  asset_id,
  task_id,
  command_name: 'goto_waypoint',
  link_name: 'eth3',
};
const segment = (name: string): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 4, arbitrary: fc.constant(ids[name] ?? '') },
    { weight: 1, arbitrary: fc.uuid() },
    {
      weight: 1,
      arbitrary: fc
        .string({ unit: 'grapheme', minLength: 1, maxLength: 20 })
        .map((text) => encodeURIComponent(text.toWellFormed())),
    },
    { weight: 1, arbitrary: fc.constantFrom('%', '%00', '__proto__', '..%2f..', '%FF', 'x'.repeat(2_000)) },
  );
const anyBody = (fields: readonly string[]): fc.Arbitrary<string> => {
  const value = fc.oneof(
    fc.jsonValue(),
    fc.double(),
    fc.string(),
    fc.constant({ lat: 47, lon: 8, alt_m: 500 }),
    fc.uuid(),
  );
  const named =
    fields.length === 0
      ? fc.constant({})
      : fc.dictionary(fc.constantFrom(...fields, '__proto__', 'constructor'), value);
  return fc.oneof(
    named.map((body) => JSON.stringify(body)),
    fc.json(),
    fc.string(),
    fc.constant('{"__proto__":{"x":1}}'),
  );
};

interface Asked {
  readonly route: Route;
  readonly url: string;
  readonly body: string;
  /** Whose turn it is. */
  readonly turn: number;
}

const anyRequest = (): fc.Arbitrary<Asked> =>
  fc.constantFrom(...routes).chain((route) =>
    fc.record({
      route: fc.constant(route),
      url: fc
        .tuple(...[...route.path.matchAll(/\{(\w+)\}/gu)].map(([, name = '']) => segment(name)))
        .map((values) => values.reduce((path, value) => path.replace(/\{\w+\}/u, () => value), route.path)),
      body: anyBody(route.fields),
      turn: fc.nat(keys_used - 1),
    }),
  );

async function ask({ route, url, body, turn }: Asked, keys: readonly string[]) {
  const response = await fetch(lab.url + url, {
    method: route.method,
    headers: {
      'x-api-key': keys[turn] ?? '',
      ...(route.method === 'GET' ? {} : { 'content-type': 'application/json' }),
    },
    ...(route.method === 'POST' ? { body } : {}),
    signal: AbortSignal.timeout(answer_ms),
  });
  return { response, text: await response.text() };
}

it('answers every request with a status and a type that the document has for it', async () => {
  await fc.assert(
    fc.asyncProperty(anyRequest(), async (asked) => {
      const { response, text } = await ask(asked, owners);
      // A segment may hold what makes it another address; then there is no such route.
      const known = asked.route.responses[String(response.status)] ?? {
        content: { 'application/problem+json': {} },
      };
      expect(response.status).toBeLessThan(500);
      expect([...Object.keys(asked.route.responses), '404', '405']).toContain(String(response.status));
      if (text === '') return;
      const [type = ''] = (response.headers.get('content-type') ?? '').split(';');
      expect(Object.keys(known.content ?? {})).toContain(type);
      if (type.endsWith('+xml')) return;
      const values = type === 'application/x-ndjson' ? text.trim().split('\n') : [text];
      for (const value of values) expect(() => JSON.parse(value) as unknown).not.toThrow();
    }),
    { numRuns: 400 },
  );
  expect(lab.log.at('error')).toEqual([]);
});

it('reports nothing to a stranger about a kit that is not his', async () => {
  const before = (await lab.store.tasks(kit_id, { limit: 200 })).length;
  await fc.assert(
    fc.asyncProperty(anyRequest(), async (asked) => {
      const { response, text } = await ask(asked, strangers);
      expect(text).not.toContain(own_secret);
      expect(response.ok && asked.url.includes(kit_id)).toBe(false);
    }),
    { numRuns: 300 },
  );
  expect((await lab.store.tasks(kit_id, { limit: 200 })).length).toBe(before);
});
