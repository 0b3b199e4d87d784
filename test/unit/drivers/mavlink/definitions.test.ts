/** The table of definitions says what node-mavlink says, and spares the daemon the library. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { checks, layouts } from '../../../../drivers/mavlink/definitions-table.ts';
import { crcExtraOf, definitionOf } from '../../../../drivers/mavlink/definitions.ts';
import { packDefinitions } from '../../../../drivers/mavlink/pack-definitions.ts';

const folder = new URL('../../../../drivers/mavlink/', import.meta.url);

it('the table is what node-mavlink defines; if not, run `node drivers/mavlink/pack-definitions.ts`', () => {
  expect({ checks: checks.trim(), layouts: layouts.trim() }).toEqual(packDefinitions());
});

it('only the tool that makes the table loads node-mavlink', () => {
  const importing = readdirSync(folder)
    .filter((name) => name.endsWith('.ts'))
    .filter((name) => readFileSync(new URL(name, folder), 'utf8').includes("from 'node-mavlink'"));
  expect(importing).toEqual(['pack-definitions.ts']);
});

it('a field stands where the fields before it end, arrays counted', () => {
  const { fields = [], full_length } = definitionOf('BATTERY_STATUS') ?? {};
  const at = Object.fromEntries(fields.map((field) => [field.name, field.at]));
  expect(at).toMatchObject({ voltages: 10, current_battery: 30, voltages_ext: 41, fault_bitmask: 50 });
  expect(full_length).toBe(54);
});

it.each([3, 65_535, 65_536, 0xff_ff_ff])('the id %i belongs to no message', (id) => {
  expect(crcExtraOf(id)).toBe(-1);
});
