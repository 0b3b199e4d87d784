/** The HTTP side of the service without a server: for what is read from its routes. */
import { Gate } from '../../../src/cloud/access/gate.ts';
import { KeyRing } from '../../../src/cloud/access/keys.ts';
import { request_limits_default } from '../../../src/cloud/http/guards.ts';
import { httpApp } from '../../../src/cloud/http/http-app.ts';
import { pageOnDemand } from '../../../src/cloud/http/page/page-files.ts';
import { Changes } from '../../../src/cloud/changes.ts';
import { Service } from '../../../src/cloud/service.ts';
import { openSqlite } from '../../../src/cloud/sql/sqlite.ts';
import { sqlStore } from '../../../src/cloud/store/sql-store.ts';
import { recordingLog } from '../recording-log.ts';

export function apiApp() {
  const store = sqlStore(openSqlite(':memory:'));
  const log = recordingLog();
  const refuse = async (): Promise<never> => Promise.reject(new Error('there is no kit'));
  const dispatcher = { dispatch: refuse, cancel: refuse };
  const changes = new Changes();
  const keys = new KeyRing(store);
  return httpApp({
    store,
    keys,
    changes,
    log,
    gate: new Gate({ keys, store, hosts: [], isSecure: false }),
    service: new Service({ store, dispatcher, changes, log, now: Date.now }),
    media_origins: [],
    limits: request_limits_default,
    page: pageOnDemand(),
    version: '0.0.0',
    unready: async () => undefined,
  });
}
