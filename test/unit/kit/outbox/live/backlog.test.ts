/** Reading ahead: how many requests are under way, and in which order lanes are read. */
import { expect, test } from 'vitest';
import { Backlog } from '../../../../../src/kit/outbox/live/backlog.ts';
import { outgoingId } from '../../../../../src/kit/outbox/live/outgoing.ts';
import type { Taken, TakeRequest } from '../../../../../src/kit/outbox/protocol.ts';

interface Asked {
  readonly request: TakeRequest;
  answer(taken: Partial<Taken>): Promise<void>;
}

function backlogOf() {
  const asked: Asked[] = [];
  const given_back: number[] = [];
  const backlog = new Backlog({
    client: {
      take: async (request) => {
        const taken = Promise.withResolvers<Taken>();
        asked.push({
          request,
          async answer(part) {
            taken.resolve({ rows: [], batch: undefined, drained: true, ...part });
            await new Promise(setImmediate);
          },
        });
        return taken.promise;
      },
    },
    form: { batch_rows: 200, batch_bytes: 64 * 1024 },
    alarms: () => 100,
    ready: () => undefined,
    failed: () => undefined,
    requeue: (messages) => given_back.push(...messages.map(outgoingId)),
  });
  /** Answers requests until one for this lane comes. */
  const upTo = async (lane: TakeRequest['lane']): Promise<Asked> => {
    for (;;) {
      const next = asked.shift();
      if (!next) throw new Error(`no request for ${lane}`);
      if (next.request.lane === lane) return next;
      await next.answer({});
    }
  };
  return { backlog, asked, given_back, upTo };
}

const batch = (token: number): NonNullable<Taken['batch']> => ({
  token,
  lane: 'feed',
  rows: 200,
  payload: new Uint8Array(1),
  lo: token * 1_000,
  hi: token * 1_000 + 199,
});

test('Backlog requests the next batches before the last one arrives, if the lane has more rows', async () => {
  const { backlog, asked, upTo } = backlogOf();
  backlog.open();
  const first = await upTo('feed');
  expect(asked).toHaveLength(0);
  await first.answer({ batch: batch(1), drained: false });
  expect(asked.map(({ request }) => request.lane)).toEqual(['feed', 'feed', 'feed']);
  const [second, third, fourth] = asked.splice(0);
  await second?.answer({ batch: batch(2), drained: false });
  await third?.answer({ batch: batch(3), drained: false });
  await fourth?.answer({ batch: batch(4), drained: true });
  const ids = [1, 2, 3, 4].map(() => {
    const outgoing = backlog.shift();
    return outgoing && outgoingId(outgoing);
  });
  expect(ids).toEqual([1_000, 2_000, 3_000, 4_000]);
});

test('Backlog reads a more important lane before it continues the current one', async () => {
  const { backlog, asked, upTo } = backlogOf();
  backlog.open();
  await (await upTo('feed')).answer({ batch: batch(1), drained: false });
  const [second, third, fourth] = asked.splice(0);
  backlog.touched('task');
  await second?.answer({ batch: batch(2), drained: false });
  await third?.answer({ batch: batch(3), drained: false });
  expect(asked).toHaveLength(0);
  await fourth?.answer({ batch: batch(4), drained: false });
  expect(asked.map(({ request }) => request.lane)).toEqual(['task']);
});

test('Backlog releases every requested batch when the connection ends', async () => {
  const { backlog, asked, given_back, upTo } = backlogOf();
  backlog.open();
  await (await upTo('feed')).answer({ batch: batch(1), drained: false });
  const [second, third, fourth] = asked.splice(0);
  expect(backlog.close().map(outgoingId)).toEqual([1_000]);
  await second?.answer({ batch: batch(2), drained: false });
  await third?.answer({ batch: batch(3), drained: false });
  await fourth?.answer({ batch: batch(4), drained: false });
  expect(given_back).toEqual([2_000, 3_000, 4_000]);
  expect(backlog.shift()).toBeUndefined();
});

test('Backlog reads a lane again that was touched during its last request', async () => {
  const { backlog, asked, upTo } = backlogOf();
  backlog.open();
  const first = await upTo('feed');
  backlog.touched('feed');
  await first.answer({ drained: true });
  expect(asked.map(({ request }) => request.lane)).toEqual(['feed']);
});
