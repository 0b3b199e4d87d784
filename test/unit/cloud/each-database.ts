/** Runs the same tests on SQLite and on a real PostgreSQL: what the store promises does not depend on the database. */
import { afterEach, describe } from 'vitest';
import type { Database } from '../../../src/cloud/sql/database.ts';
import { openPostgres } from '../../../src/cloud/sql/postgres.ts';
import { openSqlite } from '../../../src/cloud/sql/sqlite.ts';
import { peerMissing } from '../../support/peers.ts';
import { templateServer } from '../../support/database/template-server.ts';

/** `open` makes an empty database, which is closed after the test. */
export function onEachDatabase(name: string, tests: (open: () => Promise<Database>) => void): void {
  const opened: Database[] = [];
  const kept = (database: Database): Database => {
    opened.push(database);
    return database;
  };
  const closeAll = async (): Promise<void> => {
    for (const database of opened.splice(0)) await database.close().catch(() => undefined);
  };
  describe(`${name}, on SQLite`, () => {
    afterEach(closeAll);
    tests(async () => kept(openSqlite(':memory:')));
  });
  describe.skipIf(peerMissing('postgres', 'initdb', 'setpriv'))(`${name}, on PostgreSQL`, () => {
    afterEach(closeAll);
    tests(async () => {
      const server = await templateServer();
      return kept(await openPostgres({ url: await server.newDatabase(), password: server.password }));
    });
  });
}
