/** Every string and list of the contract has a maximum, in the published document and in the kit's own checks. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { fit } from '../../../src/contract/fit.ts';
import { kitTelemetry } from '../../../src/contract/kit.ts';
import { cut } from '../../../src/contract/limits.ts';

const document: unknown = JSON.parse(
  readFileSync(new URL('../../../src/contract/asyncapi.json', import.meta.url), 'utf8'),
);
const node = z.looseObject({
  type: z.union([z.string(), z.array(z.string())]).optional(),
  format: z.string().optional(),
  maxLength: z.number().optional(),
  maxItems: z.number().optional(),
  enum: z.array(z.unknown()).optional(),
  const: z.unknown(),
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
  it('has a maximum for every string and every list of its document', () => {
    const { components } = z.object({ components: z.object({ schemas: z.unknown() }) }).parse(document);
    expect(unbounded(components.schemas, '')).toEqual([]);
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
