/** Every string and list of the contract has a maximum, in the published document and in the kit's own checks. */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { fit } from '../../../src/contract/fit.ts';
import { kitTelemetry } from '../../../src/contract/kit.ts';
import { cut } from '../../../src/contract/limits.ts';
import * as frames from '../../../src/cloud/api/frames.ts';

const document: unknown = JSON.parse(
  readFileSync(new URL('../../../src/contract/asyncapi.json', import.meta.url), 'utf8'),
);
const node = z.looseObject({
  type: z.union([z.string(), z.array(z.string())]).optional(),
  format: z.string().optional(),
  maxLength: z.number().optional(),
  maxItems: z.number().optional(),
  enum: z.array(z.unknown()).optional(),
  const: z.unknown().optional(),
});

/** Paths of the schemas below `value` that accept a string or a list of any length. */
function unbounded(value: unknown, path: string): string[] {
  if (typeof value !== 'object' || value === null) return [];
  const below = Object.entries(value).flatMap(([key, child]) => unbounded(child, `${path}/${key}`));
  const { data } = node.safeParse(value);
  if (!data) return below;
  const types = new Set([data.type ?? []].flat());
  const isListed = data.enum !== undefined || data.const !== undefined || data.format === 'uuid';
  const isLong = types.has('string') && data.maxLength === undefined && !isListed;
  const isMany = types.has('array') && data.maxItems === undefined;
  return isLong || isMany ? [path, ...below] : below;
}

describe('the contract', () => {
  it('is walked by a check that sees what has none', () => {
    const schema = z.object({
      a: z.string(),
      b: z.array(z.string().max(3)),
      c: z.enum(['x']),
      type: z.uuid(),
    });
    expect(unbounded(z.toJSONSchema(schema), '')).toEqual(['/properties/a', '/properties/b']);
  });

  it('has a maximum for every string and every list of its document', () => {
    const { components } = z.object({ components: z.object({ schemas: z.unknown() }) }).parse(document);
    expect(unbounded(components.schemas, '')).toEqual([]);
  });
});

/** Rooms whose schemas are of what others send: whatever a module there exports is walked, so that none can be forgotten. */
const folders = ['contract', 'contract/asyncapi', 'contract/batch'];
/** Of the service, what clients send; the rest are answers that it writes itself. */
const requests = ['cloud/api/requests.ts', 'cloud/api/frames.ts'];
const answers: ReadonlySet<unknown> = new Set([frames.serverFrame, frames.fleetServerFrame]);

/** Schemas among the exports of a module, and in the objects that it exports: feeds by name. */
function collect(path: string, value: unknown, found: Map<string, z.ZodType>): void {
  if (value instanceof z.ZodType) {
    if (!answers.has(value)) found.set(path, value);
  } else if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    for (const [name, each] of Object.entries(value)) collect(`${path} ${name}`, each, found);
  }
}

async function received(): Promise<ReadonlyMap<string, z.ZodType>> {
  const source = new URL('../../../src/', import.meta.url);
  const files = folders.flatMap((folder) =>
    readdirSync(new URL(folder, source))
      .filter((name) => name.endsWith('.ts'))
      .map((name) => `${folder}/${name}`),
  );
  const found = new Map<string, z.ZodType>();
  for (const file of [...files, ...requests]) {
    const module: unknown = await import(new URL(file, source).href);
    collect(file, module, found);
  }
  return found;
}

describe('the checks of kit and service', () => {
  it('have a maximum for every string and every list that others send', async () => {
    const schemas = await received();
    const faults = [...schemas].flatMap(([name, schema]) =>
      unbounded(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }), name),
    );
    expect(faults).toEqual([]);
    expect([...schemas.keys()]).toEqual(
      expect.arrayContaining(['contract/batch/batch.ts batch', 'cloud/api/requests.ts createAsset']),
    );
  });
});

describe('fit', () => {
  it('cuts texts and lists beyond their limits and leaves the rest', () => {
    const wans = Array.from({ length: 40 }, (_, at) => ({ name: `wan${at}`, isp: 'x'.repeat(9_000) }));
    const { data } = fit(kitTelemetry, { wans, battery: 40 });
    expect(data?.wans).toHaveLength(32);
    expect(data?.wans?.[31]).toEqual({ name: 'wan31', isp: 'x'.repeat(256) });
    expect(data?.battery).toBe(40);
    expect(wans[0]?.isp).toHaveLength(9_000);
  });

  it('refuses what breaks the schema in another way', () => {
    expect(fit(kitTelemetry, { gateway: { name: 7 } }).success).toBe(false);
    expect(fit(kitTelemetry, { battery: 400 }).success).toBe(false);
  });

  it('never cuts in the middle of a character', () => {
    expect(cut('ab\u{1F600}', 3)).toBe('ab');
    expect(cut('ab\u{1F600}', 4)).toBe('ab\u{1F600}');
  });
});
