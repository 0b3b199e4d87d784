/**
 * Whether commits wait for a standby where the database has one. Kits delete what `down/ack` names, so that a promoted standby that
 * lacks acknowledged messages would lack them for good.
 */
import { z } from 'zod';
import { messageOf } from '../../platform/errors.ts';
import { texts } from '../texts.ts';
import { openPostgres, type PostgresOptions } from './postgres.ts';
import type { Queries } from './database.ts';

const state = z.object({ names: z.string(), commit: z.string(), standbys: z.coerce.number() });

/** Commits return before the standby has them; `off`: before the own disk has them. */
const without_standby: ReadonlySet<string> = new Set(['local', 'off']);

/**
 * Returns the fault with its remedy; undefined: what is acknowledged survives a failover. `isReplicated`: the configuration names
 * standbys, also while none is connected.
 */
export async function replicationFault(queries: Queries, isReplicated: boolean): Promise<string | undefined> {
  // Who may not read the statistics of others sees these rows with nothing but their process.
  const rows = await queries.all(
    `SELECT current_setting('synchronous_standby_names') AS names, current_setting('synchronous_commit') AS commit,
       (SELECT count(*) FROM pg_stat_replication WHERE application_name IS DISTINCT FROM 'pg_basebackup') AS standbys`,
  );
  const { names, commit, standbys } = state.parse(rows[0]);
  if (standbys === 0 && !isReplicated) return commit === 'off' ? texts.commit_off : undefined;
  if (names.trim() === '') return texts.asynchronous_standbys(standbys);
  return without_standby.has(commit) ? texts.commit_without_standby(commit) : undefined;
}

/** For `check`: connects, and makes no tables. Returns sentences; none: nothing is wrong. */
export async function replicationWarnings(
  options: PostgresOptions,
  isReplicated: boolean,
): Promise<readonly string[]> {
  try {
    const database = await openPostgres(options, { prepares: false });
    try {
      const fault = await replicationFault(database, isReplicated);
      return fault === undefined ? [] : [fault];
    } finally {
      await database.close();
    }
  } catch (error) {
    return [texts.replication_unknown(messageOf(error))];
  }
}
