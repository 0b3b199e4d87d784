/** What the store needs of an SQL database. Written once for SQLite and PostgreSQL: `?` stands for a parameter, JSON is text. */

export type SqlValue = string | number | null | Uint8Array;
export type Row = Readonly<Record<string, unknown>>;

export interface Queries {
  /** Runs a statement and returns its rows, also those of RETURNING. Outside a transaction, a statement that writes gets its own. */
  readonly all: (sql: string, ...values: readonly SqlValue[]) => Promise<readonly Row[]>;
}

export interface Database extends Queries {
  /** All of `work` or nothing. No other work of this process sees the middle of it. Rejects when another version has changed the tables. */
  readonly transaction: <T>(work: (queries: Queries) => Promise<T>) => Promise<T>;
  /** The same for storing what kits sent: it waits for no connection that other work has taken. */
  readonly transactionAhead: Database['transaction'];
  /** Overwrites what deleted rows have left in the files, as far as the database can. */
  readonly forget: () => Promise<void>;
  /** Why this program may not write the tables any more; undefined: it may. */
  readonly schemaFault: () => Promise<string | undefined>;
  readonly close: () => Promise<void>;
}

/** A part of a statement, with the values of its parameters. */
export class Clause {
  readonly text: string;
  readonly values: readonly SqlValue[];

  constructor(text: string, values: readonly SqlValue[] = []) {
    this.text = text;
    this.values = values;
  }
}

function joined(texts: readonly string[], parts: readonly (SqlValue | Clause)[]): Clause {
  let text = texts[0] ?? '';
  const values: SqlValue[] = [];
  for (const [at, part] of parts.entries()) {
    if (part instanceof Clause) values.push(...part.values);
    else values.push(part);
    text += (part instanceof Clause ? part.text : '?') + (texts[at + 1] ?? '');
  }
  return new Clause(text, values);
}

/** Each `${value}` becomes a parameter, never a part of the text; a clause takes its place with its own ones. */
export function clause(texts: TemplateStringsArray, ...parts: readonly (SqlValue | Clause)[]): Clause {
  return joined(texts, parts);
}

/** A text of ours, such as the name of a table. */
export function raw(text: string): Clause {
  return new Clause(text);
}

export const nothing = raw('');

/** Values, or clauses, with commas or another word between them. */
export function listed(parts: readonly (SqlValue | Clause)[], between = ', '): Clause {
  return joined(
    parts.map((_, at) => (at === 0 ? '' : between)),
    parts,
  );
}

/** Those conditions of the list that apply; each is in brackets. */
export function allOf(conditions: readonly (Clause | false | undefined)[]): Clause {
  return listed(
    conditions.filter((each) => each !== undefined && each !== false).map((each) => clause`(${each})`),
    ' AND ',
  );
}

export function anyOf(conditions: readonly Clause[]): Clause {
  return listed(
    conditions.map((each) => clause`(${each})`),
    ' OR ',
  );
}

/** `name = value` for each column that is given. */
export function assigned(columns: Readonly<Record<string, SqlValue | undefined>>, between = ', '): Clause {
  const given = Object.entries(columns).flatMap(([name, value]) =>
    value === undefined ? [] : [clause`${raw(name)} = ${value}`],
  );
  return listed(given, between);
}

/** The row that has these columns. */
export function isEach(columns: Readonly<Record<string, SqlValue>>): Clause {
  return assigned(columns, ' AND ');
}

/** Runs a statement that is written as a clause. */
export function sql(queries: Queries) {
  return async (...written: Parameters<typeof clause>): Promise<readonly Row[]> => {
    const { text, values } = clause(...written);
    return queries.all(text, ...values);
  };
}
