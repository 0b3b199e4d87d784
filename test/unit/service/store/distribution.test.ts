/** The schema stays distributable by kit, and each statement about one kit names it: what Citus needs. */
import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { kit_tables, service_tables } from '../../../../src/service/store/sql/distribution.ts';
import { after_columns, tables } from '../../../../src/service/store/sql/tables.ts';

const all: readonly string[] = [...kit_tables, ...service_tables];
const distributed: ReadonlySet<string> = new Set(kit_tables);

/** By table: the columns of its primary key. */
function keysOf(statements: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const keys = new Map<string, readonly string[]>();
  for (const statement of statements) {
    const [, table] = /^CREATE TABLE IF NOT EXISTS (\w+)/u.exec(statement) ?? [];
    if (table === undefined) continue;
    const [, several, single] = /PRIMARY KEY \(([^)]+)\)|(\w+) TEXT PRIMARY KEY/u.exec(statement) ?? [];
    keys.set(table, (several ?? single ?? '').split(', '));
  }
  return keys;
}

/** Faults of a schema against the rules. */
function schemaFaults(statements: readonly string[]): readonly string[] {
  const keys = keysOf(statements);
  const text = statements.join('\n');
  return [
    ...[...keys.keys()].filter((table) => !all.includes(table)).map((table) => `${table} is in neither list`),
    ...all.filter((table) => !keys.has(table)).map((table) => `${table} does not exist`),
    ...kit_tables
      .filter((table) => !keys.get(table)?.includes('kit_id'))
      .map((table) => `the key of ${table} lacks kit_id`),
    ...(/REFERENCES|SERIAL|GENERATED|\bUNIQUE\b/iu.exec(text) ?? []).map((word) => `the schema has ${word}`),
  ];
}

/** SQL texts in a source: from the quote to its end, with what is inserted left in place. */
function statementsIn(source: string): readonly string[] {
  const begin =
    /([`'"])((?:SELECT|INSERT INTO|UPDATE|DELETE FROM)\s(?:\$\{(?:[^{}]|\{[^{}]*\})*\}|(?!\1)[\s\S])*)\1/gu;
  const found = source.matchAll(begin);
  return [...found].map(([, , sql = '']) => sql.replaceAll(/\s+/gu, ' '));
}

/** Kit tables that a statement reads or writes. */
function kitTablesOf(sql: string): readonly string[] {
  const names = [...sql.matchAll(/\b(?:FROM|JOIN|INTO|UPDATE)\s+(\w+)/gu)].map(([, name = '']) => name);
  return names.filter((name) => distributed.has(name));
}

/** Statements about all kits at once, which every worker answers for its own, each with why there is no kit. */
const across_kits: readonly (readonly [start: RegExp, why: string])[] = [
  [/^UPDATE tasks SET due_ms = created_ms/u, 'once, when the column is added'],
  [/^UPDATE history_erased SET before_ms = erased_ms/u, 'at the start, bounds of earlier versions'],
  [/^SELECT SUM\(messages\) AS messages FROM history_in/u, 'what waits for the compactor'],
];

describe('the tables', () => {
  it('have kit_id in the key of each one that is divided by kit, and nothing that refers to another', () => {
    expect(schemaFaults([...tables, ...after_columns])).toEqual([]);
  });

  it.each([
    ['CREATE TABLE IF NOT EXISTS novel (id TEXT PRIMARY KEY)', 'novel is in neither list'],
    ['CREATE TABLE IF NOT EXISTS feeds (id TEXT, PRIMARY KEY (id, kit))', 'the key of feeds lacks kit_id'],
    ['CREATE TABLE IF NOT EXISTS kits (kit_id TEXT PRIMARY KEY REFERENCES x)', 'the schema has REFERENCES'],
  ])('are found at fault by %j', (statement, fault) => {
    expect(schemaFaults([...tables, statement])).toContain(fault);
  });
});

describe('the statements', () => {
  const files = globSync('src/service/**/*.ts');
  const found = files.flatMap((file) =>
    statementsIn(readFileSync(file, 'utf8')).map((sql) => ({ file, sql, of: kitTablesOf(sql) })),
  );

  it('are found in the sources', () => {
    expect(found.filter(({ of }) => of.length > 0).length).toBeGreaterThan(40);
  });

  it('about tables that are divided by kit name the kit, unless they are about all kits', () => {
    const without = found
      .filter(({ sql, of }) => of.length > 0 && !sql.includes('kit_id'))
      .filter(({ sql }) => !across_kits.some(([start]) => start.test(sql)))
      .map(({ file, sql }) => `${file}: ${sql}`);
    expect(without).toEqual([]);
  });

  it('about all kits are all still there', () => {
    const unused = across_kits.filter(([start]) => !found.some(({ sql }) => start.test(sql)));
    expect(unused).toEqual([]);
  });
});
