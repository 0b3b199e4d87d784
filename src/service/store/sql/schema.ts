/**
 * Which version of the tables a database has, and which versions may write it: two numbers in every database, which each transaction that
 * writes compares with those of its program. How a change of the tables is divided into steps: decision 0044.
 */
import { texts } from '../../texts.ts';
import { added_columns, after_columns, schema_version, tables, writers_from } from './tables.ts';

export interface Marks {
  readonly version: number;
  /** The oldest version whose writing is still understood. */
  readonly writers_from: number;
}

/** The marks of a program, and what it makes of the tables. */
export interface Schema extends Marks {
  readonly tables: readonly string[];
  readonly added_columns: typeof added_columns;
  readonly after_columns: readonly string[];
}

export const schema: Schema = { version: schema_version, writers_from, tables, added_columns, after_columns };

/**
 * Who brings the tables up to date. `alone`: a service, which excludes older writers only while none is connected. `now`: it excludes them
 * at once. `never`: a tool, which uses what is there, and makes tables in an empty database only.
 */
export type Upgrade = 'alone' | 'now' | 'never';

/** Why a program may not write the tables that it finds; undefined: it may. */
export function schemaFault(found: Marks, mine: Marks): string | undefined {
  if (found.writers_from > mine.version) return texts.schema_later(found.version, mine.version);
  // As after a restore, or a failover that lost the upgrade.
  return found.version < mine.version ? texts.schema_earlier(found.version, mine.version) : undefined;
}

/** The marks after an upgrade: neither ever falls. */
export function raised(found: Marks, mine: Marks): Marks {
  return {
    version: Math.max(found.version, mine.version),
    writers_from: Math.max(found.writers_from, mine.writers_from),
  };
}

/** Whether a statement leaves the rows as they are; VACUUM runs in no transaction. Any other one gets one, which looks at the marks. */
export function isReading(sql: string): boolean {
  return /^\s*(?:SELECT|WITH|VACUUM)\b/u.test(sql);
}
