/** What waits for a database that takes nothing is limited: the sender keeps the rest, and all that was taken is stored. */
import { afterEach, expect, it, vi } from 'vitest';
import { StorageBusy, StorageUnavailable } from '../../../../src/platform/errors.ts';
import { turn } from '../../../../src/platform/time.ts';
import { Changes } from '../../../../src/cloud/changes.ts';
import { type IngestParts, waiting_max, waiting_weight_max } from '../../../../src/cloud/ingest/ingest.ts';
import type { Reception } from '../../../../src/cloud/read-message.ts';
import type { Committed } from '../../../../src/cloud/stored/stored.ts';
import { asset_id, kit_id, task_id } from '../../../support/contract-samples.ts';
import { eventually } from '../../../support/eventually.ts';
import { gps, received, startIngest } from '../story.ts';
import { texts } from '../../../../src/cloud/texts.ts';

const reception: Reception = {
  kit_id,
  messages: [],
  cleared: [],
  retained: false,
  historical: false,
  faults: [],
};

it('refuses what is beyond the limit and tells how many, reports once that the database is away, and stores what waited when it is back', async () => {
  let isAway = true;
  let stored = 0;
  const commit = async (receptions: readonly Reception[]) => {
    if (isAway) throw new StorageUnavailable('the disk is full');
    stored += receptions.length;
    return nothing;
  };
  const { ingest, log, ends } = startIngest({ store: { commit }, group_ms: 0 });
  const taken: Promise<void>[] = [];
  for (let n = 0; n < waiting_max; n += 1) taken.push(ingest.take(reception));
  for (const batch of [batchOf([1]), batchOf([2, 3])])
    await expect(ingest.take(batch)).rejects.toBeInstanceOf(StorageUnavailable);
  await eventually('the database was tried', () => ingest.unready !== undefined);
  isAway = false;
  await Promise.all(taken);
  expect(stored).toBe(waiting_max);
  expect([...log.at('error')].sort()).toEqual([texts.log_turned_away, texts.log_write_failed].sort());
  expect(log.at('info')).toEqual([texts.log_writes_restored]);
  expect(log.lines.filter(({ sentence }) => sentence === texts.log_takes_again)).toMatchObject([
    { facts: { messages: 3 } },
  ]);
  await ingest.take(reception);
  expect(stored).toBe(waiting_max + 1);
  ends.abort();
});

const nothing: Committed = {
  changes: [],
  acks: [],
  births: [],
  new_kits: [],
  without_presence: [],
  refused: [],
  hasEvents: false,
  files: [],
};

const running: AbortController[] = [];
afterEach(() => {
  for (const ends of running.splice(0)) ends.abort();
});

function intakeOn(
  commit: (receptions: readonly Reception[]) => Promise<void>,
  more: Pick<IngestParts, 'hasAnswered'> = {},
) {
  const store = {
    commit: async (receptions: readonly Reception[]) => {
      await commit(receptions);
      return nothing;
    },
  };
  const started = startIngest({ store, group_ms: 0, ...more });
  running.push(started.ends);
  return started;
}

/** One reception with messages of these numbers, as of a batch. */
function batchOf(seqs: readonly number[], kit: string = kit_id): Reception {
  const messages = seqs.flatMap((seq) => received(gps(seq, seq)).messages);
  return { ...reception, kit_id: kit, messages };
}

it('acknowledges a message to its kit, and shows it to clients, only once it is stored', async () => {
  const ends = new AbortController();
  running.push(ends);
  const { signal } = ends;
  const told: string[] = [];
  const changes = new Changes();
  changes.subscribeAll(() => told.push('shown'), signal);
  const attempts: PromiseWithResolvers<Committed>[] = [];
  const commit = async (): Promise<Committed> => {
    const attempt = Promise.withResolvers<Committed>();
    attempts.push(attempt);
    return attempt.promise;
  };
  const onCommitted = (): void => void told.push('acknowledged');
  const { ingest } = startIngest({ store: { commit }, changes, group_ms: 0, onCommitted, signal });
  const taken = ingest.take(batchOf([1])).then(() => told.push('taken'));
  await eventually('a commit', () => attempts.length === 1);
  attempts[0]?.reject(new StorageUnavailable('the disk is full'));
  await eventually('another one', () => attempts.length === 2);
  expect(told).toEqual([]);
  attempts[1]?.resolve({ ...nothing, changes: [{ kind: 'asset_gone', kit_id, asset_id }] });
  await taken;
  expect(told).toEqual(['shown', 'acknowledged', 'taken']);
});

it('gives up one message of a batch that no database takes, stores the others, and counts its number', async () => {
  const stored: number[] = [];
  const refused: number[] = [];
  const { ingest, log } = intakeOn(async (receptions) => {
    const messages = receptions.flatMap((each) => each.messages);
    if (messages.some(({ seq, refused: reason }) => seq === 613 && reason === undefined)) {
      throw new Error('out of range');
    }
    for (const { seq, refused: reason } of messages) (reason === undefined ? stored : refused).push(seq);
  });
  const all = Array.from({ length: 1_000 }, (_, n) => n + 1);
  const one = ingest.take(batchOf(all));
  const other = ingest.take(batchOf([5_000], task_id));
  await Promise.all([one, other]);
  expect([...stored].sort((a, b) => a - b)).toEqual([...all.filter((seq) => seq !== 613), 5_000]);
  expect(refused).toEqual([613]);
  expect(log.lines.map(({ facts }) => facts)).toEqual([
    { kit_id, epoch: 17, seq: 613, channel: 'feed', reason: 'out of range' },
  ]);
});

it('stores the other kits while another client holds the rows of one, and that one when they are free', async () => {
  let isBusy = true;
  let attempts = 0;
  const stored: string[] = [];
  const { ingest, log } = intakeOn(async (receptions) => {
    if (isBusy && receptions.some((each) => each.kit_id === kit_id)) {
      attempts += 1;
      throw new StorageBusy('locked');
    }
    for (const { kit_id: kit, messages } of receptions)
      for (const { seq } of messages) stored.push(`${kit} ${seq}`);
  });
  const held = [1, 2].map(async (seq) => ingest.take(batchOf([seq])));
  const others = [1, 2, 3].map(async (seq) => ingest.take(batchOf([seq], task_id)));
  await Promise.all(others);
  expect(stored).toEqual([1, 2, 3].map((seq) => `${task_id} ${seq}`));
  const late = ingest.take(batchOf([3]));
  await eventually('it was tried again', () => attempts >= 4);
  await ingest.take(batchOf([4], task_id));
  expect(ingest.unready).toBeUndefined();
  isBusy = false;
  await Promise.all([...held, late]);
  expect(stored.filter((each) => each.startsWith(kit_id)).sort()).toEqual(
    [1, 2, 3].map((seq) => `${kit_id} ${seq}`),
  );
  await ingest.settled();
  await ingest.take(batchOf([4]));
  expect(log.lines).toEqual([]);
});

it.each([undefined, new StorageBusy('locked')])(
  'stores all of a kit when more of it meets the lock while its first transaction is repeated (%s)',
  async (outcome) => {
    const repeated = Promise.withResolvers<undefined>();
    let calls = 0;
    let stored = 0;
    const { ingest } = intakeOn(async (receptions) => {
      calls += 1;
      // The transaction of 500 and the one of 100 meet the lock; the first is repeated meanwhile.
      if (calls === 1 || receptions.length === 100) {
        if (calls === 3) repeated.resolve(undefined);
        if (calls <= 3) throw new StorageBusy('locked');
      } else if (calls === 2) {
        await repeated.promise;
        await turn();
        if (outcome) throw outcome;
      }
      stored += receptions.length;
    });
    await Promise.all(Array.from({ length: 600 }, async () => ingest.take(reception)));
    expect(stored).toBe(600);
    await ingest.settled();
  },
);

it('rejects what is held when the service stops, so that the broker keeps it', async () => {
  const { ingest, ends } = intakeOn(async () => {
    throw new StorageBusy('locked');
  });
  const held = ingest.take(batchOf([1]));
  ends.abort();
  await expect(held).rejects.toBeInstanceOf(StorageBusy);
  await ingest.settled();
});

it('reports that the database does not answer when a commit hangs', async () => {
  vi.useFakeTimers();
  try {
    const answer = Promise.withResolvers<undefined>();
    const { ingest, ends } = intakeOn(async () => answer.promise);
    const taken = ingest.take(reception);
    await vi.advanceTimersByTimeAsync(9_000);
    expect(ingest.unready).toBeUndefined();
    await vi.advanceTimersByTimeAsync(2_000);
    expect(ingest.unready).toBe(texts.database_silent);
    answer.resolve(undefined);
    await taken;
    expect(ingest.unready).toBeUndefined();
    ends.abort();
  } finally {
    vi.useRealTimers();
  }
});

it('reports that the database is busy when a commit hangs and other work is answered', async () => {
  vi.useFakeTimers();
  try {
    const answer = Promise.withResolvers<undefined>();
    const { ingest, ends } = intakeOn(async () => answer.promise, { hasAnswered: () => true });
    const taken = ingest.take(reception);
    await vi.advanceTimersByTimeAsync(11_000);
    expect(ingest.unready).toBe(texts.database_slow);
    answer.resolve(undefined);
    await taken;
    ends.abort();
  } finally {
    vi.useRealTimers();
  }
});

it('stores heavy receptions in small transactions, and has room for another batch when they are stored', async () => {
  const sizes: number[] = [];
  const release: (() => void)[] = [];
  const { ingest } = intakeOn(async (receptions) => {
    sizes.push(receptions.length);
    await new Promise<void>((resolve) => release.push(resolve));
  });
  const heavy: Reception = { ...reception, weight: waiting_weight_max / 16 };
  const taken = Array.from({ length: 18 }, async () => ingest.take(heavy));
  let hasRoom = false;
  const room = ingest.room().then(() => (hasRoom = true));
  await eventually('a transaction waits', () => release.length === 1);
  expect(hasRoom).toBe(false);
  for (let n = 1; n < 9; n += 1) {
    release[n - 1]?.();
    await eventually('the next one waits', () => release.length === n + 1);
  }
  expect(hasRoom).toBe(true);
  release.at(-1)?.();
  await Promise.all([...taken, room]);
  expect(sizes).toEqual(Array(9).fill(2));
});
