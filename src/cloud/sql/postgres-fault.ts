/** Faults of a PostgreSQL server as errors of this program, with what to do about them. */
import { DatabaseError } from 'pg';
import { InvariantBroken, messageOf, StorageBusy, StorageUnavailable } from '../../platform/errors.ts';
import { texts } from '../texts.ts';

/** The connection ended, or the server aborted for another transaction: a retry may succeed at once. */
export class Interrupted extends StorageUnavailable {}

/** A table has other columns than when the statement was prepared, and nothing was done. */
export class PlanOutdated extends Interrupted {}

/** SQLSTATE classes of permanent errors: data, integrity, syntax. */
const permanent: ReadonlySet<string> = new Set(['22', '23', '42']);

/** SQLSTATE: the server is a standby, or was made one. */
const read_only = '25006';
/** SQLSTATE: another transaction holds the lock. */
const lock_not_available = '55P03';
/** The routine of the server that finds a prepared statement outdated; its code stands for much else, and its message is translated. */
const plan_outdated = 'RevalidateCachedQuery';
/** The message of `pg` after its limit for a query. */
const timed_out = 'Query read timeout';

/** What an operator has to do, by SQLSTATE. None of these concerns the message that was to be stored. */
const remedies: Readonly<Record<string, string>> = {
  [read_only]: texts.database_standby,
  '28000': texts.postgres_login,
  '28P01': texts.postgres_login,
  '3D000': texts.postgres_no_database,
  '42501': texts.postgres_rights,
  '42P01': texts.postgres_tables,
  '53100': texts.postgres_disk,
  '53300': texts.postgres_connections,
};

/** Another server may answer: this one ended the connection, is not reachable, or is a standby. */
export function isOfServer(error: unknown): boolean {
  if (!(error instanceof DatabaseError)) return !(error instanceof InvariantBroken);
  return error.code === read_only || error.code?.startsWith('57P') === true;
}

/** Converts errors: a permanent one is a fault of the statement or a value; any other may be retried. */
export function asOurs(error: unknown): Error {
  if (error instanceof StorageUnavailable || error instanceof InvariantBroken) return error;
  const code = error instanceof DatabaseError ? (error.code ?? '') : '';
  const reason = messageOf(error) || 'not reachable';
  const remedy = remedies[code];
  if (remedy !== undefined) return new Interrupted(`PostgreSQL: ${reason}; ${remedy}`);
  if (permanent.has(code.slice(0, 2)))
    return new InvariantBroken(`PostgreSQL rejected a statement: ${reason}`);
  if (code === lock_not_available) return new StorageBusy(`PostgreSQL: ${reason}`);
  const sentence = `PostgreSQL: ${reason}; check the server and "database"`;
  if (error instanceof DatabaseError && error.routine === plan_outdated) return new PlanOutdated(sentence);
  // A retry would wait as long again.
  return reason === timed_out ? new StorageUnavailable(sentence) : new Interrupted(sentence);
}
