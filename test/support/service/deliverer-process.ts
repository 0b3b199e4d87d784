/**
 * A service's deliverer in a process of its own, to be killed: `node deliverer-process.ts DATABASE CLOCK_AHEAD_MS TIMEOUT_MS`.
 * The database is an address of PostgreSQL with its password in PGPASSWORD.
 */
import { openPostgres } from '../../../src/cloud/sql/postgres.ts';
import { sqlStore } from '../../../src/cloud/store/sql-store.ts';
import { AddressPolicy } from '../../../src/cloud/webhooks/address-policy.ts';
import { Deliverer } from '../../../src/cloud/webhooks/deliverer.ts';
import { recordingLog } from '../recording-log.ts';

const [database = '', ahead_ms = '0', timeout_ms = '10000'] = process.argv.slice(2);
const deliverer = new Deliverer({
  store: sqlStore(await openPostgres({ url: database, password: process.env['PGPASSWORD'] })),
  log: recordingLog(),
  policy: new AddressPolicy({ allow: ['127.0.0.0/8'], allow_http: true }),
  timeout_ms: Number(timeout_ms),
  disable_after_ms: 3_600_000,
  now: () => Date.now() + Number(ahead_ms),
  random: () => 0,
});
await deliverer.run(new AbortController().signal);
