import { expect, it } from 'vitest';
import { z } from 'zod';
import { drivers } from '../../../../drivers/index.ts';
import { configReference, rowsOf } from '../../../../src/kit/config/reference.ts';

const link = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('udp'), port: z.int().min(1).max(65_535).describe('own port') }),
  z.strictObject({ kind: z.literal('serial'), path: z.string().describe('device') }),
]);
const sample = z.strictObject({
  level: z.enum(['low', 'high']).default('low').describe('a|b'),
  links: z.array(link).describe('ways in'),
  wan: z.record(z.string(), z.strictObject({ isp: z.string().optional() })).default({}),
  share: z.number().positive().max(1).optional(),
  names: z.array(z.string()).default([]),
});
const schema = z.toJSONSchema(sample, { target: 'draft-7', io: 'input' });

it('lists each key with its values, default and meaning, also inside lists, maps and choices', () => {
  expect(
    rowsOf('x', schema).map(({ key, values, preset, meaning }) => [key, values, preset, meaning]),
  ).toEqual([
    ['x.level', '`low`, `high`', '`low`', 'a|b'],
    ['x.links', 'list of section', '', 'required; ways in'],
    ['x.links[].kind', '`udp`', '', 'selects the keys below'],
    ['x.links[].port', 'integer, 1 to 65535', '', 'required; own port'],
    ['x.links[].kind', '`serial`', '', 'selects the keys below'],
    ['x.links[].path', 'string', '', 'required; device'],
    ['x.wan.*.isp', 'string', '', ''],
    ['x.share', 'number, above 0 to 1', '', ''],
    ['x.names', 'list of string', '`[]`', ''],
  ]);
});

it('escapes what would end a cell of the table', () => {
  expect(configReference({ properties: { level: { description: 'a|b' } } }, new Map())).toContain('a\\|b');
});

it('has a section for each driver', async () => {
  const loaded = await Promise.all(drivers.map(async ({ load }) => load()));
  const page = configReference(
    {},
    new Map(loaded.map(({ name, options }) => [name, z.toJSONSchema(options, { io: 'input' })])),
  );
  for (const { name } of drivers) expect(page).toContain(`## Driver \`${name}\``);
});
