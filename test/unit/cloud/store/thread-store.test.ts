/** The thread of the database dies over a message: it is replaced, the message is found, and the others are stored. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { InvariantBroken, StorageUnavailable } from '../../../../src/platform/errors.ts';
import type { Reception } from '../../../../src/cloud/read-message.ts';
import { openThreadStore } from '../../../../src/cloud/store/thread-store.ts';
import { asset_id, kit_id } from '../../../support/contract-samples.ts';
import { gps, received, start_ms, startIngest } from '../story.ts';
import { texts } from '../../../../src/cloud/texts.ts';
import type { Store } from '../../../../src/cloud/store/sql-store.ts';

let dir: string;
let store: Store;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'kit-connector-'));
  store = await openThreadStore(join(dir, 'service.db'), { heap_mb: 24 });
});
afterEach(async () => {
  await store.close().catch(() => undefined);
  await rm(dir, { recursive: true, force: true });
});

/** More than the thread may hold, in one message. */
const bomb = (): Reception => {
  const reception = received(gps(2, 47));
  const [message] = reception.messages;
  if (!message) throw new Error('the story has a message');
  return {
    ...reception,
    messages: [{ ...message, data: { lists: Array.from({ length: 300_000 }, () => [{}, {}, {}]) } }],
  };
};

describe('the thread of the database', () => {
  it('is replaced after a crash, and reports the call that crashed it', async () => {
    await store.commit([received(gps(1, 47))], start_ms);
    const death = store.commit([bomb()], start_ms);
    const beside = store.kits('*');
    await expect(death).rejects.toBeInstanceOf(InvariantBroken);
    await expect(death).rejects.toThrow('the database thread ended');
    await expect(beside).rejects.toBeInstanceOf(StorageUnavailable);
    await store.commit([received(gps(3, 48))], start_ms);
    expect((await store.kit(kit_id))?.counts.received).toBe(2);
  });

  it(
    'costs only the message that it dies over: the others of the transaction are stored, and its number counts',
    { tags: 'long' },
    async () => {
      const { ingest, log, ends } = startIngest({ store });
      const receptions = [1, 3, 4, 5].map((seq) => received(gps(seq, 47)));
      await Promise.all([...receptions, bomb()].map(async (reception) => ingest.take(reception)));
      const kit = await store.kit(kit_id);
      expect(kit?.counts).toMatchObject({ received: 5, refused: 1 });
      expect(log.at('error')).toEqual([texts.log_message_rejected]);
      expect(await store.feeds(kit_id, asset_id)).toHaveLength(1);
      ends.abort();
    },
  );

  it('is not started again once the store is closed', async () => {
    await store.close();
    await expect(store.kits('*')).rejects.toThrow(texts.database_closed);
  });
});
