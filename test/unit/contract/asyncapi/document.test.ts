/** The published contract is a valid AsyncAPI document, says what the sources say, and its schemas accept what zod accepts. */
import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import formats from 'ajv-formats';
import { describe, expect, it } from 'vitest';
import { asyncApi, channelSpecs } from '../../../../src/contract/asyncapi/document.ts';
import { documents, documentText } from '../../../../src/tools/docs.ts';
import { samples } from '../../../support/contract-samples.ts';

const specification = new URL('../../../../node_modules/@asyncapi/specs/schemas/3.0.0.json', import.meta.url);

interface Published {
  operations: Record<string, { action: string; bindings: { mqtt: { qos: number; retain: boolean } } }>;
  channels: Record<string, { address: string }>;
  components: { schemas: Record<string, object> };
}
const published = JSON.parse(JSON.stringify(asyncApi())) as Published;

describe('the AsyncAPI document', () => {
  const isAsyncApi = (() => {
    // The specification brings draft-07 along, so ajv must not.
    const ajv = new Ajv({ strict: false, allErrors: true, meta: false, validateSchema: false });
    formats.default(ajv);
    return ajv.compile(JSON.parse(readFileSync(specification, 'utf8')) as object);
  })();

  it('is valid by the official schema of AsyncAPI 3.0.0', () => {
    expect(isAsyncApi(published) ? [] : isAsyncApi.errors).toEqual([]);
  });

  it('would not be valid with a field that AsyncAPI does not have', () => {
    const channels = { ...published.channels, state: { ...published.channels['state'], adress: 'k1' } };
    expect(isAsyncApi({ ...published, channels })).toBe(false);
  });

  it('has every reference resolved', () => {
    const references = [...JSON.stringify(published).matchAll(/"\$ref":"#\/([^"]+)"/gu)].map(
      (match) => match[1]!,
    );
    const lost = references.filter((path) => {
      let at: unknown = published;
      for (const key of path.split('/')) at = (at as Record<string, unknown> | undefined)?.[key];
      return at === undefined;
    });
    expect(references.length).toBeGreaterThan(50);
    expect(lost).toEqual([]);
  });

  it('retains what late comers need and never a dispatch, and sends everything at least once', () => {
    const operations = Object.entries(published.operations);
    const retained = operations.filter(([, { bindings }]) => bindings.mqtt.retain).map(([name]) => name);
    expect(retained).toEqual([
      'send_state',
      'send_roster',
      'send_asset',
      'send_commands',
      'send_partner',
      'receive_ack',
      'receive_config',
    ]);
    expect(operations.every(([, { bindings }]) => bindings.mqtt.qos === 1)).toBe(true);
  });

  it('gives every message a separate name', () => {
    const names = channelSpecs.flatMap(({ messages }) => messages.map(({ name }) => name));
    expect(new Set(names).size).toBe(names.length);
  });
});

describe('each schema of the document', () => {
  const ajv = new Ajv({ strict: false });
  formats.default(ajv);
  ajv.addSchema(published, 'asyncapi.json');
  const compiled = (name: string) => ajv.compile({ $ref: `asyncapi.json#/components/schemas/${name}` });

  it.each(Object.keys(published.components.schemas))('compiles: %s', (name) => {
    expect(compiled(name)('no message is a string')).toBe(false);
  });

  const messages = channelSpecs.flatMap((channel) => channel.messages);

  it.each(messages.map((message) => [message.name, message] as const))(
    'takes the good message and judges 10 spoilt forms of each of its values as the connector does: %s',
    (name, { schema }) => {
      const isValid = compiled(name);
      const good = samples[name];
      expect([schema.safeParse(good).success, isValid(good)]).toEqual([true, true]);
      const disputed = spoilt(good).filter((bad) => schema.safeParse(bad).success !== isValid(bad));
      expect(disputed).toEqual([]);
    },
  );
});

const wrong = [undefined, null, -1, 1e9, 0.5, 'x', '2026-11-21T10:00:00+01:00', true, {}, []];

/** The value with each of its parts in turn left out or replaced, and with a key too many in each of its objects. */
function spoilt(value: unknown): unknown[] {
  const others = wrong.filter((other) => other !== undefined) as unknown[];
  if (typeof value !== 'object' || value === null) return others;
  const inner = Object.entries(value).flatMap(([key, part]) =>
    [...spoilt(part), undefined].map((other) => {
      const copy = structuredClone(value) as Record<string, unknown>;
      if (other === undefined && !Array.isArray(copy)) delete copy[key];
      else copy[key] = other ?? null;
      return copy;
    }),
  );
  const extra = Array.isArray(value) ? [...(value as unknown[]), 'x'] : { ...value, unheard_of: 1 };
  return [...others, extra, ...inner];
}

describe('a generated document', () => {
  it.each(documents.map((document) => [document.file.split('/').slice(-2).join('/'), document] as const))(
    'is checked in as the sources build it: %s (else run `npm run docs`)',
    (_, document) => {
      expect(readFileSync(document.file, 'utf8')).toBe(documentText(document));
    },
  );
});
