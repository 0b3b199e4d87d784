/** A service's deliverer in a process of its own, to be killed: `node deliverer-process.ts DATABASE CLOCK_AHEAD_MS`. */
import { openSqlite } from '../../../src/service/store/sql/sqlite.ts';
import { SqlStore } from '../../../src/service/store/sql-store.ts';
import { AddressPolicy } from '../../../src/service/webhooks/address-policy.ts';
import { Deliverer } from '../../../src/service/webhooks/deliverer.ts';
import { recordingLog } from '../recording-log.ts';

const [database = '', ahead_ms = '0'] = process.argv.slice(2);
const deliverer = new Deliverer({
  store: new SqlStore(openSqlite(database)),
  log: recordingLog(),
  policy: new AddressPolicy({ allow: ['127.0.0.0/8'], allow_http: true }),
  timeout_ms: 10_000,
  disable_after_ms: 3_600_000,
  now: () => Date.now() + Number(ahead_ms),
  random: () => 0,
});
await deliverer.run(new AbortController().signal);
