/**
 * Loaded before the program (`node --import`), it makes the program one of another version, whose tables the variable `OTHER_TABLES` names: so
 * two versions of the service run side by side as they are, without the program knowing of it.
 */
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

const otherTables = z.object({ schema_version: z.int(), writers_from: z.int(), column: z.string() });
export type OtherTables = z.output<typeof otherTables>;

export const other_tables_module = fileURLToPath(import.meta.url);

const wanted = process.env['OTHER_TABLES'];
if (wanted !== undefined) makeOther(otherTables.parse(JSON.parse(wanted)));

function makeOther({ schema_version, writers_from, column }: OtherTables): void {
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      if (!url.endsWith('/cloud/sql/tables.ts') || !loaded.source) return loaded;
      const text = Buffer.from(loaded.source as string).toString('utf8');
      const step = `{ version: ${schema_version}, writers_from: ${writers_from}, adds: [column('kits', '${column}', 'TEXT')] }`;
      const [before, ...after] = text.split(/\];\s*$/u);
      if (before === undefined || after.length !== 1)
        throw new Error('tables.ts does not end with its steps');
      return { ...loaded, source: `${before}${step},\n];\n` };
    },
  });
}
