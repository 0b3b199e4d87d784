/** What the log says of messages that are refused or ignored. */
import { describe, expect, it, vi } from 'vitest';
import { channels, trial_channel, upTopic } from '../../../../src/contract/topics.ts';
import { Receiver } from '../../../../src/cloud/ingest/receiver.ts';
import { openSqlite } from '../../../../src/cloud/sql/sqlite.ts';
import { sqlStore } from '../../../../src/cloud/store/sql-store.ts';
import { texts } from '../../../../src/cloud/texts.ts';
import { kit_id, task_id } from '../../../support/contract-samples.ts';
import { useFakeTime } from '../../../support/fake-time.ts';
import { startIngest } from '../story.ts';

useFakeTime();

function lab() {
  const store = sqlStore(openSqlite(':memory:'));
  const { ingest, log, ends } = startIngest({ store, group_ms: 0 });
  const receiver = new Receiver({ take: async (reception) => ingest.take(reception), log });
  let seq = 0;
  const settle = async (received: Promise<void>): Promise<void> => {
    await vi.advanceTimersByTimeAsync(1);
    await received;
  };
  return {
    log,
    store,
    receiver,
    settle,
    send: async (battery: unknown, kit = kit_id, channel: string = channels.telemetry): Promise<void> => {
      seq += 1;
      const text = `{"time":"2026-11-26T08:00:00.000Z","epoch":1,"seq":${seq},"data":${JSON.stringify({ battery })}}`;
      await settle(
        receiver.receive({ topic: upTopic(kit, channel), payload: Buffer.from(text), retained: false }),
      );
    },
    end: async (): Promise<void> => {
      ends.abort();
      await store.close();
    },
  };
}

describe('the log of refused messages', () => {
  it('has a line for each kind at once, with kit, topic and reason, and one with the count of those that follow', async () => {
    const { log, send, end } = lab();
    await send('full');
    await send('half');
    await send(200);
    await send('empty', task_id);
    const line = (kit: string, reason: string, more = {}) => ({
      level: 'warn',
      sentence: texts.log_message_invalid,
      facts: { kit_id: kit, channel: 'telemetry', reason, ...more },
    });
    const kinds = [
      line(kit_id, 'data.battery: expected number, received string "full"'),
      line(kit_id, 'data.battery: Too big: expected number to be <=100, received 200'),
      line(task_id, 'data.battery: expected number, received string "empty"'),
    ];
    expect(log.lines).toEqual(kinds);
    await send('low');
    await vi.advanceTimersByTimeAsync(660_000);
    const repeated = line(kit_id, 'data.battery: expected number, received string "low"', { repeated: 2 });
    expect(log.lines).toEqual([...kinds, repeated]);
    await send('full');
    expect(log.lines).toHaveLength(5);
    await end();
  });

  it('has the count at a stop, too', async () => {
    const { log, send, end } = lab();
    await send('full');
    await send('full');
    await end();
    expect(log.lines).toMatchObject([{}, { facts: { repeated: 1 } }]);
  });

  it('names topics that this version does not know, and topics of no kit, which count as nothing', async () => {
    const { log, store, send, end } = lab();
    await send(5, kit_id, 'telemtry');
    await send(5, kit_id, 'telemtry');
    await send(5, kit_id, trial_channel);
    await send(5, 'kit-7');
    expect(log.lines).toEqual([
      { level: 'warn', sentence: texts.log_topic_unknown, facts: { kit_id, channel: 'telemtry' } },
      { level: 'warn', sentence: texts.log_topic_without_kit, facts: { topic: 'k1/kit-7/up/telemetry' } },
    ]);
    expect((await store.kit(kit_id))?.counts.refused).toBe(0);
    await end();
  });

  it('counts what is not read because it is too large', async () => {
    const { store, receiver, settle, end } = lab();
    await settle(
      receiver.refuse(upTopic(kit_id, channels.batch), texts.message_too_large(2_000_000, 1_048_576)),
    );
    expect(await store.kit(kit_id)).toMatchObject({
      counts: { refused: 1 },
      losses: { refused: [{ what: 'batch', reason: '2000000 bytes; at most 1048576' }] },
    });
    await end();
  });
});
