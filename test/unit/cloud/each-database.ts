/** Runs the same tests on SQLite and on a real PostgreSQL: what the store promises does not depend on the database. */
import { afterAll, afterEach, beforeAll, describe } from 'vitest';
import type { Database } from '../../../src/cloud/sql/database.ts';
import { openPostgres } from '../../../src/cloud/sql/postgres.ts';
import { openSqlite } from '../../../src/cloud/sql/sqlite.ts';
import { peerMissing } from '../../support/peers.ts';
import { type Postgres, startPostgres } from '../../support/database/postgres.ts';

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
    let server: Postgres;
    let databases = 0;
    beforeAll(async () => {
      server = await startPostgres();
      const made = await openPostgres({ url: await server.newDatabase('made'), password: server.password });
      await made.close();
    });
    afterEach(closeAll);
    afterAll(async () => server?.stop());
    tests(async () => {
      databases += 1;
      // Its tables are there: to make them takes longer than most tests.
      const url = await server.newDatabase(`kits_${databases}`, { template: 'made' });
      return kept(await openPostgres({ url, password: server.password }));
    });
  });
}
