/** How long clients wait for answers over HTTP from a large store. */
import { makeKey } from '../../../src/cloud/principal.ts';
import { scopes } from '../../../src/cloud/scopes.ts';
import { request_limits_default } from '../../../src/cloud/http/guards.ts';
import { pageOnDemand } from '../../../src/cloud/http/page/page-files.ts';
import { startService } from '../../../src/cloud/start.ts';
import { type DatabaseChoice, openStore } from '../../../src/cloud/open-store.ts';
import { recordingLog } from '../../support/recording-log.ts';
import { median } from '../figure.ts';
import { alarm_type } from './kit-messages.ts';
import type { Template } from './large-store.ts';
import { day_ms } from '../../../src/platform/time.ts';

/** Each for another kit, so that nothing but the tables is warm. */
const requests = 15;

export interface Waits {
  readonly series_30d_ms: number;
  readonly track_24h_ms: number;
  readonly events_30d_ms: number;
  readonly page_ms: number;
}

export async function measureReading(
  choice: DatabaseChoice,
  { kit, from_ms, to_ms }: Template,
  kit_ids: readonly string[],
): Promise<Waits> {
  const { store } = await openStore(choice);
  const { text, key } = makeKey(
    { label: 'bench', scopes: [...scopes], kits: '*', expires_ms: null },
    Date.now(),
  );
  await store.addKey(key);
  const refuse = async (): Promise<never> => Promise.reject(new Error('there is no kit'));
  const service = await startService({
    store,
    dispatcher: { dispatch: refuse, cancel: refuse },
    listen: { host: '127.0.0.1', port: 0 },
    hosts: [],
    media_origins: [],
    limits: { ...request_limits_default, reads_per_s: 10_000 },
    page: pageOnDemand(),
    version: '0',
    log: recordingLog(),
    group_ms: 0,
    unready: () => undefined,
    onCommitted: () => undefined,
  });
  const [drone = ''] = kit.drones;
  const span = `from=${from_ms}&to=${to_ms}`;
  const ask = async (kit_id: string, path: string, has: string): Promise<number> => {
    const start_ms = performance.now();
    const response = await fetch(`${service.url}/api/kits/${kit_id}/${path}`, {
      headers: { 'x-api-key': text },
    });
    const body = await response.text();
    const took_ms = performance.now() - start_ms;
    if (!response.ok || !body.includes(has))
      throw new Error(`${path}: ${response.status} ${body.slice(0, 200)}`);
    return took_ms;
  };
  const waitFor = async (path: string, has: string): Promise<number> => {
    const waits: number[] = [];
    for (let n = 0; n <= requests; n += 1) {
      const wait_ms = await ask(kit_ids[n % kit_ids.length] ?? '', path, has);
      // The first one compiles.
      if (n > 0) waits.push(wait_ms);
    }
    return median(waits);
  };
  try {
    return {
      series_30d_ms: await waitFor(
        `series?select=${drone}:battery.voltage&${span}&bucket_s=3600`,
        '"figures"',
      ),
      track_24h_ms: await waitFor(
        `assets/${drone}/track?from=${to_ms - 3 * day_ms}&to=${to_ms - 2 * day_ms}`,
        'MultiLineString',
      ),
      events_30d_ms: await waitFor(`events?types=${alarm_type}&${span}&limit=1000`, '"next":null'),
      page_ms: await waitFor(`history?${span}&limit=1000`, '"next":"'),
    };
  } finally {
    await service.stop();
  }
}
