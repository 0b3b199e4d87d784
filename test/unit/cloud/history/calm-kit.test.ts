/**
 * An hour of a kit on which nothing happens: telemetry, positions and heartbeats of its devices, as the demo sends them. Reports that
 * repeat a state filled the activity of others (home-assistant/core#32434, #73329).
 */
import { expect, it } from 'vitest';
import { assetId } from '../../../../src/contract/identity.ts';
import type { JsonObject } from '../../../../src/contract/json.ts';
import { channels } from '../../../../src/contract/topics.ts';
import { alarmStates } from '../../../../src/cloud/api/alarm-resources.ts';
import { HistoryOperations } from '../../../../src/cloud/history/reading/operations.ts';
import type { Reception } from '../../../../src/cloud/read-message.ts';
import { openSqlite } from '../../../../src/cloud/sql/sqlite.ts';
import { sqlStore } from '../../../../src/cloud/store/sql-store.ts';
import { kit_id } from '../../../support/contract-samples.ts';
import { calm, received, start_ms } from '../story.ts';

const [camera, drone, radio] = ['camera', 'drone', 'radio'].map((name) => assetId(kit_id, name));
const hour_s = 3_600;
let seq = 0;

function message(channel: string, data: JsonObject, time_ms: number): Reception {
  seq += 1;
  return received({ channel, seq, data, time_ms });
}

/** What is sent in this second; the buffer count flips between none and one. */
function messagesAt(second: number): readonly Reception[] {
  const time_ms = start_ms + second * 1_000;
  const outbox = { rows: (second / 5) % 2, bytes: 0, oldest: null };
  const due: readonly (readonly [every_s: number, channel: string, data: JsonObject])[] = [
    [1, channels.feed(drone ?? '', 'gps'), { lat: 47.1, lon: 8.5 + second / 1e6, alt_m: 500 }],
    [5, channels.state, { ...calm, outbox }],
    [
      10,
      channels.telemetry,
      { battery: 80, wans: [{ name: 'eth3', status: 'online', latency_ms: second % 50 }] },
    ],
    [30, channels.feed(radio ?? '', 'radio'), { signal_dbm: -60 - (second % 3) }],
    [60, channels.event(camera ?? '', 'status'), { online: true, motion_alarm: false, ai_alarm: null }],
    [60, channels.event(radio ?? '', 'status'), { online: true, cpu_pct: second % 20, uptime_s: second }],
  ];
  return due.flatMap(([every_s, channel, data]) =>
    second % every_s === 0 ? [message(channel, data, time_ms)] : [],
  );
}

it('a calm kit has no row of activity, and no alarm, in an hour', { tags: 'long' }, async () => {
  const store = sqlStore(openSqlite(':memory:'));
  await store.beginHistory(start_ms);
  let sent = 0;
  for (let second = 0; second <= hour_s; second += 5) {
    const some = [0, 1, 2, 3, 4].flatMap((more) => messagesAt(second + more));
    sent += some.length;
    await store.commit(some, start_ms + second * 1_000);
    if (second % 600 === 0) await store.lookAtAlarms(start_ms + second * 1_000);
  }
  expect(sent).toBeGreaterThan(4_000);
  const hour = {
    from_ms: start_ms + 1,
    to_ms: start_ms + hour_s * 1_000 + 1,
    order: 'asc',
    limit: 1_000,
  } as const;
  expect((await new HistoryOperations(store).events(kit_id, hour)).events).toEqual([]);
  const query = { kits: [kit_id], states: alarmStates, limit: 10, now_ms: start_ms + hour_s * 1_000 };
  expect(await store.alarms(query)).toEqual([]);
  await store.close();
});
