/** A PostgreSQL for all test files of a process, and databases that have the tables of the service: to make either takes longer than most tests. */
import { openPostgres } from '../../../src/cloud/sql/postgres.ts';
import { startPostgres } from './postgres.ts';

export interface TemplateServer {
  readonly password: string;
  /** The address of a new database. */
  newDatabase(): Promise<string>;
}

/** Modules are read again for each file; what is global stays. */
const place = Symbol.for('template server of the tests');
const kept = globalThis as { [place]?: Promise<TemplateServer> };

/** Starts it when it is first asked for. It dies with this process. */
export async function templateServer(): Promise<TemplateServer> {
  return (kept[place] ??= start());
}

async function start(): Promise<TemplateServer> {
  const server = await startPostgres({ outlives_file: true });
  const { password } = server;
  const template = 'made';
  const made = await openPostgres({ url: await server.newDatabase(template), password });
  await made.close();
  let databases = 0;
  return {
    password,
    newDatabase: async () => {
      databases += 1;
      return server.newDatabase(`kits_${databases}`, { template });
    },
  };
}
