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
      if (!url.endsWith('/service/store/sql/tables.ts') || !loaded.source) return loaded;
      let text = Buffer.from(loaded.source as string).toString('utf8');
      const replace = (pattern: RegExp, by: string): void => {
        if (!pattern.test(text)) throw new Error(`tables.ts has no ${pattern.source}`);
        text = text.replace(pattern, by);
      };
      replace(/schema_version = \d+/u, `schema_version = ${schema_version}`);
      replace(/writers_from = \d+/u, `writers_from = ${writers_from}`);
      replace(
        /(?=\{ table: 'kits', column: 'vouched_ms')/u,
        `{ table: 'kits', column: '${column}', type: 'TEXT' }, `,
      );
      return { ...loaded, source: text };
    },
  });
}
