/** When a kit went offline. Its will was written when it connected (emqx#10680, netdata#8629), and no broker adds the time of the end (mosquitto#1225). */
import { expect, it } from 'vitest';
import { writeEnvelope } from '../../../src/contract/envelope.ts';
import type { JsonObject } from '../../../src/contract/json.ts';
import { connection_lost, deathSeq, stateSeq } from '../../../src/contract/presence.ts';
import { channels, upTopic } from '../../../src/contract/topics.ts';
import { HistoryOperations } from '../../../src/cloud/history/reading/operations.ts';
import { queueResource } from '../../../src/cloud/api/views.ts';
import { readMessage } from '../../../src/cloud/read-message.ts';
import { sqlStore } from '../../../src/cloud/store/sql-store.ts';
import { kit_id, samples } from '../../support/contract-samples.ts';
import { onEachDatabase } from './each-database.ts';

const start_ms = Date.UTC(2026, 10, 21, 10);
const minute_ms = 60_000;
const at = (minutes: number): number => start_ms + minutes * minute_ms;
const iso = (minutes: number): string => new Date(at(minutes)).toISOString();

interface Sent {
  readonly seq: number;
  readonly channel?: string;
  readonly data: JsonObject;
  /** By the clock of the kit, in minutes. */
  readonly said: number;
  /** By the clock of the service; left out: at once. */
  readonly arrives?: number;
  readonly retained?: boolean;
  readonly epoch?: number;
  readonly isUnsynced?: boolean;
}

const state = (online: boolean, reason: string | null, rows: number): JsonObject => ({
  ...samples['kitState'],
  online,
  reason,
  outbox: { rows, bytes: rows * 100, oldest: null },
});
const birth = (connection: number, said: number, rows = 439): Sent => ({
  seq: stateSeq(connection, 1),
  data: state(true, null, rows),
  said,
});
const drained = (connection: number, said: number): Sent => ({
  seq: stateSeq(connection, 2),
  data: state(true, null, 0),
  said,
});
const will = (connection: number, said: number, arrives: number): Sent => ({
  seq: deathSeq(connection),
  data: state(false, connection_lost, 439),
  said,
  arrives,
});
const telemetry = (seq: number, said: number): Sent => ({
  seq,
  channel: channels.telemetry,
  data: { battery: 50 },
  said,
});

onEachDatabase('the end of a connection', (open) => {
  async function lab() {
    const store = sqlStore(await open());
    await store.beginHistory(start_ms);
    return {
      send: async (sent: Sent) => {
        const { seq, channel = channels.state, data, said, arrives = said, retained = false } = sent;
        const { epoch = 1, isUnsynced = false } = sent;
        const quality = isUnsynced ? { time_quality: 'unsynced' as const } : {};
        const text = writeEnvelope({ epoch, seq, time_ms: at(said), ...quality }, JSON.stringify(data));
        const read = readMessage(upTopic(kit_id, channel), Buffer.from(text), retained);
        if (!read) throw new Error(`no channel of the contract: ${channel}`);
        const { changes } = await store.commit([read], at(arrives));
        return changes.flatMap((change) => (change.kind === 'kit' && change.turned ? [change.turned] : []));
      },
      queue: async (minutes: number) => {
        const kit = await store.kit(kit_id);
        if (!kit) throw new Error('the kit is not known');
        return queueResource(kit, at(minutes));
      },
      events: async () => {
        const span = { from_ms: 0, to_ms: at(100_000), order: 'asc', limit: 100 } as const;
        const { events } = await new HistoryOperations(store).events(kit_id, { ...span, types: ['state'] });
        return events.map(({ time, data }) => [time, data['online'] === true ? 'online' : data['reason']]);
      },
    };
  }

  it('has the time at which the service noticed it, in events, in what is announced, and in the queue', async () => {
    const { send, queue, events } = await lab();
    await send(birth(1, 0));
    await send(drained(1, 2));
    const [turned] = await send(will(1, 0, 19));
    expect(turned).toMatchObject({ online: false, reason: connection_lost, time_ms: at(19) });
    expect(await events()).toEqual([
      [iso(0), 'online'],
      [iso(19), connection_lost],
    ]);
    expect(await queue(20)).toMatchObject({ online: false, since: iso(19), reason: connection_lost });
  });

  it('leaves the newest report of the buffer, and takes that of the will where no newer one came', async () => {
    const { send, queue } = await lab();
    await send(birth(1, 0));
    await send(drained(1, 2));
    await send(will(1, 0, 19));
    expect(await queue(20)).toMatchObject({ waiting_rows: 0, as_of: iso(2) });
    // The birth of the second connection never came: its will is newer than all that is known.
    await send(will(2, 30, 40));
    expect(await queue(41)).toMatchObject({ waiting_rows: 439, as_of: iso(30) });
  });

  it('is noticed late by a service that was away: when it reads what the broker kept', async () => {
    const { send, queue, events } = await lab();
    await send(birth(1, 0));
    await send({ ...will(1, 0, 600), retained: true });
    expect(await queue(601)).toMatchObject({ online: false, since: iso(600) });
    expect((await events()).at(-1)).toEqual([iso(600), connection_lost]);
  });

  it.each([
    [
      'is its own time where the kit stopped by itself',
      { reason: 'stopped', said: 18, isUnsynced: false, at: 18 },
    ],
    [
      'is when it was noticed where the clock of that kit was not set',
      { reason: 'stopped', said: -9_000_000, isUnsynced: true, at: 19 },
    ],
  ])('%s', async (_, { reason, said, at: expected, isUnsynced }) => {
    const { send, events } = await lab();
    await send(birth(1, 0));
    const stop = { ...will(1, said, 19), data: state(false, reason, 7), isUnsynced };
    const [turned] = await send(stop);
    expect(turned?.time_ms).toBe(at(expected));
    expect((await events()).at(-1)).toEqual([iso(expected), reason]);
  });

  it('comes after the messages of a kit whose clock is ahead, and not when that clock is behind', async () => {
    const { send, events } = await lab();
    await send({ ...birth(1, 120), arrives: 0 });
    await send({ ...telemetry(7, 130), arrives: 10 });
    await send(will(1, 120, 19));
    expect((await events()).at(-1)).toEqual([iso(130), connection_lost]);
    await send({ ...birth(2, -500), arrives: 200 });
    await send(will(2, -500, 210));
    expect((await events()).at(-1)).toEqual([iso(210), connection_lost]);
  });

  it.each([
    ['an earlier connection', birth(2, 5), will(1, 0, 6), ['online']],
    ['an earlier start', { ...birth(1, 5), epoch: 2 }, will(3, 0, 6), ['online', 'online']],
  ])('is not that of %s, whose will comes late', async (_, now, late, expected) => {
    const { send, queue, events } = await lab();
    await send(birth(1, 0));
    await send(now);
    expect(await send(late)).toEqual([]);
    expect(await queue(7)).toMatchObject({ online: true, reason: null });
    expect((await events()).map(([, what]) => what)).toEqual(expected);
  });

  it('is one event, however many replicas read the will', async () => {
    const { send, events } = await lab();
    await send(birth(1, 0));
    const turns = await Promise.all(
      [19, 20, 21].map(async (arrives) => send({ ...will(1, 0, arrives), retained: arrives > 19 })),
    );
    expect(turns.flat()).toHaveLength(1);
    expect(await events()).toHaveLength(2);
  });
});
