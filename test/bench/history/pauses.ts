/** How long a commit waits while the history is divided, summed up and deleted beside it. */
import { randomUUID } from 'node:crypto';
import { server_round_ms } from '../../../src/cloud/history/keeper.ts';
import { dayOf } from '../../../src/cloud/history/message.ts';
import { day_ms, sleep } from '../../../src/platform/time.ts';
import { batchOf } from './ingest.ts';
import { KitMessages } from './kit-messages.ts';
import type { Store } from '../../../src/cloud/store/sql-store.ts';

/** Batches of a backlog, a day and a half of one kit. */
const backlog_batches = 30;
const batch_messages = 4_000;
const live_messages = 20;
const every_ms = 25;
const quiet_commits = 80;
const nothing_older_days = -1;

export interface Pauses {
  readonly quiet_p99_ms: number;
  readonly quiet_max_ms: number;
  readonly busy_p99_ms: number;
  readonly busy_max_ms: number;
  readonly commits: number;
}

export async function measurePauses(store: Store): Promise<Pauses> {
  const now_ms = dayOf(Date.now()) * day_ms + server_round_ms;
  const drained = new KitMessages(randomUUID(), now_ms - 3 * day_ms);
  const live = new KitMessages(randomUUID(), now_ms, 2);
  const quiet = await waitsOf(store, live, { until: (commits) => commits >= quiet_commits });
  for (let batch = 0; batch < backlog_batches; batch += 1)
    await store.commit([batchOf(drained, batch_messages)], now_ms);
  let isDone = false;
  const work = workOff(store, now_ms).finally(() => (isDone = true));
  const busy = await waitsOf(store, live, { until: () => isDone });
  await work;
  return {
    quiet_p99_ms: percentile(quiet, 0.99),
    quiet_max_ms: Math.max(...quiet),
    busy_p99_ms: percentile(busy, 0.99),
    busy_max_ms: Math.max(...busy),
    commits: busy.length,
  };
}

/** What the keeper does, with everything to do at once: divide, sum up, delete. */
async function workOff(store: Store, now_ms: number): Promise<void> {
  while ((await store.compactHistory(now_ms, true)) > 0);
  while (await store.rollUpHistory(now_ms));
  const days = {
    event: nothing_older_days,
    position: nothing_older_days,
    feed: nothing_older_days,
    kit: nothing_older_days,
  };
  while ((await store.trimHistory({ days, figures_days: nothing_older_days }, now_ms)) > 0);
}

async function waitsOf(
  store: Store,
  live: KitMessages,
  { until }: { readonly until: (commits: number) => boolean },
): Promise<number[]> {
  const waits: number[] = [];
  const { signal } = new AbortController();
  while (!until(waits.length)) {
    const reception = { ...batchOf(live, live_messages), packed: undefined, historical: false };
    const start_ms = performance.now();
    await store.commit([reception], Date.now());
    waits.push(performance.now() - start_ms);
    await sleep(every_ms, signal);
  }
  return waits;
}

function percentile(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? 0;
}
