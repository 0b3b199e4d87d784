/**
 * Which version of the tables a database has, and which versions may write it: two numbers in every database, which each transaction that
 * writes compares with those of its program. How a change of the tables is divided into steps: decision 0044.
 */
import { texts } from '../texts.ts';
import { type Addition, type Step, steps } from './tables.ts';

export interface Marks {
  readonly version: number;
  /** The oldest version whose writing is still understood. */
  readonly writers_from: number;
}

/** The marks of a program, and what it makes of the tables. */
export interface Schema extends Marks {
  readonly steps: readonly Step[];
}

/** The schema that these steps make: its marks are those of the last one. */
export function schemaOf(all: readonly Step[]): Schema {
  const { version = 0, writers_from = 0 } = all.at(-1) ?? {};
  return { version, writers_from, steps: all };
}

export const schema = schemaOf(steps);

/** The statements that add what is missing, in order. `present`: names of tables and indexes, and `table.column`; `at`: the full name. */
export function additions(
  { steps: all }: Schema,
  present: ReadonlySet<string>,
  at: (name: string) => string = (name) => name,
): readonly string[] {
  return all
    .flatMap(({ adds }) => adds)
    .filter((each) => !present.has(each.kind === 'column' ? `${at(each.table)}.${each.name}` : at(each.name)))
    .flatMap((each) => statementsOf(each, at));
}

function statementsOf(each: Addition, at: (name: string) => string): readonly string[] {
  switch (each.kind) {
    case 'table':
      return [`CREATE TABLE ${at(each.name)} (${each.columns})`];
    case 'index':
      return [`CREATE INDEX ${at(each.name)} ON ${each.table} ${each.on}`];
    case 'column':
    default:
      return [
        `ALTER TABLE ${at(each.table)} ADD COLUMN ${each.name} ${each.type}`,
        ...(each.fill === undefined ? [] : [each.fill]),
      ];
  }
}

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
