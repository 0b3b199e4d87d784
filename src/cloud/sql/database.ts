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

/** Runs a statement with its values where they belong: each `${value}` becomes a parameter, never a part of the text. */
export function sql(queries: Queries) {
  return async (parts: TemplateStringsArray, ...values: readonly SqlValue[]): Promise<readonly Row[]> =>
    queries.all(parts.join('?'), ...values);
}
