/**
 * Empty databases on a Citus cluster that runs already: a schema each, its tables of kits distributed by `kit_id`. Debian has no package of
 * Citus, so that these tests run where `KIT_CONNECTOR_CITUS` names the coordinator (`test/README.md`).
 */
import { Client } from 'pg';
import { openPostgres } from '../../../src/service/store/sql/postgres.ts';
import type { Database } from '../../../src/service/store/sql/database.ts';
import { kit_tables } from '../../../src/service/store/sql/distribution.ts';

/** Address of the coordinator; undefined: there is no cluster. */
export const citus_url = process.env['KIT_CONNECTOR_CITUS'];

/** Makes an empty schema, the tables of the service in it, and distributes them. */
export async function openCitus(coordinator: string, schema: string): Promise<Database> {
  const url = `${coordinator}?options=${encodeURIComponent(`-c search_path=${schema}`)}`;
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
    await client.query(`CREATE SCHEMA ${schema}`);
    await (await openPostgres({ url, password: undefined })).close();
    for (const table of kit_tables)
      await client.query(`SELECT create_distributed_table('${table}', 'kit_id', shard_count => 8)`);
  } finally {
    await client.end();
  }
  return openPostgres({ url, password: undefined });
}
