/** The table of definitions says what node-mavlink says, and spares the daemon the library. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { checks, layouts, targets } from '../../../../../drivers/mavlink/wire/definitions-table.ts';
import { crcExtraOf } from '../../../../../drivers/mavlink/wire/definitions.ts';
import { packDefinitions } from '../../../../../drivers/mavlink/wire/pack-definitions.ts';

const folder = new URL('../../../../../drivers/mavlink/', import.meta.url);

it('The definitions table matches node-mavlink; if not, run `node drivers/mavlink/wire/pack-definitions.ts`', () => {
  expect({ checks: checks.trim(), targets: targets.trim(), layouts }).toEqual(packDefinitions());
});

it('Only the generator of the definitions table loads node-mavlink', () => {
  const importing = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .filter((name) => readFileSync(new URL(name, folder), 'utf8').includes("from 'node-mavlink'"));
  expect(importing).toEqual(['wire/pack-definitions.ts']);
});

it.each([3, 65_535, 65_536, 0xff_ff_ff])('The definitions have no message for the id %i', (id) => {
  expect(crcExtraOf(id)).toBe(-1);
});
