import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeDirectory } from '../../support/temporary.ts';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { eventually } from '../../support/eventually.ts';
import { messagesIn, openLab, type OutboxLab } from '../../support/outbox-lab.ts';
import type { Lane } from '../../../src/contract/lanes.ts';
import type { Parcel } from '../../../src/outbox/parcel.ts';

let dir: string;
let lab: OutboxLab;
const heard = (parcel: Parcel): void => lab.outbox.dispatch.acknowledged(parcel, { heard: true });
const soon = async (holds: () => boolean | Promise<boolean>): Promise<void> =>
  eventually('the outbox gets there', holds);
const byValue = (a: unknown, b: unknown): number => Number(a) - Number(b);
const numbers = (parcels: readonly Parcel[]): unknown[] =>
  parcels.flatMap(messagesIn).map(({ data }) => data['n']);

beforeEach(async () => {
  dir = await makeDirectory();
  lab = await openLab(dir);
});
afterEach(async () => {
  expect(lab.outbox.ledger().balanced).toBe(true);
  await lab.outbox.close();
  await rm(dir, { recursive: true });
});

async function reopen(): Promise<void> {
  await lab.outbox.close();
  lab = await openLab(dir);
}

describe('while the broker is there', () => {
  beforeEach(async () => lab.connect());

  it('telemetry leaves at once and never touches the disk', async () => {
    lab.send('feed', 1);
    const parcel = lab.outbox.dispatch.next({ backlog: true });
    expect(parcel && numbers([parcel])).toEqual([1]);
    if (parcel) heard(parcel);
    await lab.outbox.flush();
    expect(lab.outbox.depth().get('feed')?.rows).toBe(0);
  });

  it('a task report leaves only when it is on disk, and before the telemetry that came earlier', async () => {
    lab.send('feed', 1);
    lab.send('task', 2);
    const first = lab.outbox.dispatch.next({ backlog: true });
    expect(first && numbers([first])).toEqual([1]);
    lab.send('feed', 3);
    await lab.outbox.committed();
    const second = lab.outbox.dispatch.next({ backlog: true });
    expect(second && numbers([second])).toEqual([2]);
    expect(lab.outbox.depth().get('task')?.rows).toBe(1);
  });

  it('an acknowledged message counts as delivered a moment later, and leaves the disk', async () => {
    lab.send('alarm', 1);
    await lab.pump(heard);
    await soon(() => lab.outbox.ledger().delivered === 1);
    await soon(() => lab.outbox.depth().get('alarm')?.rows === 0);
  });

  it('telemetry that is not acknowledged within a second is written, and not sent twice by it', async () => {
    lab.send('feed', 1);
    const parcel = lab.outbox.dispatch.next({ backlog: true });
    await soon(() => lab.outbox.depth().get('feed')?.rows === 1);
    expect(lab.outbox.dispatch.next({ backlog: true })).toBeUndefined();
    if (parcel) heard(parcel);
    await soon(() => lab.outbox.depth().get('feed')?.rows === 0);
    expect(lab.outbox.ledger()).toMatchObject({ accepted: 1, delivered: 1, buffered: 0 });
  });

  it('a refused message goes to the quarantine with its reason, and can be tried again', async () => {
    lab.send('feed', 1);
    lab.send('alarm', 2);
    await lab.pump((parcel) => lab.outbox.dispatch.refused(parcel, 0x87, 'not authorised'));
    await soon(() => lab.outbox.ledger().quarantined === 2);
    const { quarantine } = await lab.outbox.inspect();
    expect(quarantine.map(({ code, reason }) => [code, reason])).toEqual([
      [0x87, 'not authorised'],
      [0x87, 'not authorised'],
    ]);
    expect(await lab.outbox.retryQuarantined(undefined)).toBe(2);
    expect(numbers(await lab.pump(heard)).sort(byValue)).toEqual([1, 2]);
  });

  it('a message that nobody hears is kept, its kind rests, and others go on', async () => {
    lab.send('feed', 1);
    await lab.pump(
      (parcel) => lab.outbox.dispatch.acknowledged(parcel, { heard: false }),
      () => lab.outbox.dispatch.unheard().length > 0,
    );
    expect(lab.outbox.dispatch.unheard()).toEqual(['feed']);
    lab.send('feed', 2);
    lab.send('alarm', 3);
    const others = await lab.pump(heard, () => lab.outbox.dispatch.unheard().length === 0);
    expect(numbers(others)).toContain(3);
    expect([...new Set(numbers([...others, ...(await lab.pump(heard))]))].sort(byValue)).toEqual([1, 2, 3]);
  });

  it('a retained message that nobody hears yet is delivered: the broker keeps it', async () => {
    lab.send('presence', 1);
    await lab.pump((parcel) => lab.outbox.dispatch.acknowledged(parcel, { heard: false }));
    await soon(() => lab.outbox.ledger().delivered === 1);
    expect(lab.outbox.dispatch.unheard()).toEqual([]);
  });

  it('a message larger than any may be is dropped with its reason, and the rest goes on', async () => {
    lab.outbox.append({ lane: 'feed', channel: 'feed/a/gps', data: { text: 'x'.repeat(300_000) } });
    lab.send('feed', 2);
    expect(numbers(await lab.pump(heard))).toEqual([2]);
    expect(lab.outbox.ledger().dropped).toEqual({ too_large: 1 });
    expect(lab.said).toContain('a message is larger than any may be: dropped');
  });
});

describe('while the broker is away', () => {
  it('everything is kept, and after a restart comes back in the order of importance, oldest first', async () => {
    for (let n = 0; n < 20; n += 1) lab.send('feed', n);
    lab.send('alarm', 100);
    lab.send('task', 200);
    await reopen();
    await lab.connect();
    const parcels = await lab.pump(heard);
    expect(numbers(parcels)).toEqual([200, 100, ...Array.from({ length: 20 }, (_, n) => n)]);
    expect(parcels.every(({ backlog }) => backlog)).toBe(true);
    expect(parcels.at(-1)?.channel).toBe('batch');
  });

  it('of a retained topic only the newest is kept', async () => {
    for (let n = 0; n < 5; n += 1) lab.send('presence', n);
    await lab.outbox.committed();
    await lab.connect();
    expect(numbers(await lab.pump(heard))).toEqual([4]);
    expect(lab.outbox.ledger().dropped).toEqual({ superseded: 4 });
  });

  it('live messages pass a backlog, and the backlog still gets its share', async () => {
    await lab.outbox.close();
    lab = await openLab(dir, { batch_rows: 1 });
    for (let n = 0; n < 3_000; n += 1) lab.send('feed', n);
    await lab.outbox.flush();
    await lab.connect();
    await soon(() => lab.outbox.dispatch.next({ backlog: true }) !== undefined);
    for (let n = 0; n < 40; n += 1) lab.send('feed', 10_000 + n);
    const next = Array.from({ length: 40 }, () => lab.outbox.dispatch.next({ backlog: true }));
    const backlog = next.filter((parcel) => parcel?.backlog).length;
    expect(backlog).toBeGreaterThanOrEqual(3);
    expect(backlog).toBeLessThanOrEqual(5);
  });
});

describe('while the disk refuses', () => {
  it('messages are shown in their lanes, in memory, and on the disk once it takes them', async () => {
    const other = new Database(join(dir, 'buffer.db'));
    other.exec('BEGIN IMMEDIATE');
    lab.send('feed', 1);
    lab.send('feed', 2);
    lab.send('alarm', 3);
    await soon(() => lab.outbox.health().state === 'failing');
    const shown = (lane: Lane) => lab.outbox.depth().get(lane);
    await soon(() => shown('feed')?.memory_rows === 2);
    expect(shown('feed')).toMatchObject({ rows: 0, memory_rows: 2 });
    await soon(() => shown('alarm')?.memory_rows === 1);
    other.exec('ROLLBACK');
    other.close();
    await soon(() => shown('feed')?.rows === 2 && shown('alarm')?.rows === 1);
    expect([shown('feed')?.memory_rows, shown('alarm')?.memory_rows]).toEqual([0, 0]);
  });
});

describe('when the connection breaks', () => {
  it('what was in flight is sent again', async () => {
    await lab.connect();
    lab.send('feed', 1);
    lab.send('alarm', 2);
    await lab.pump(
      () => undefined,
      () => lab.outbox.dispatch.live_rows === 0 && lab.outbox.depth().get('alarm')?.rows === 1,
    );
    await lab.pump(() => undefined);
    lab.outbox.dispatch.disconnected();
    await lab.connect();
    expect(numbers(await lab.pump(heard)).sort(byValue)).toEqual([1, 2]);
    await soon(() => lab.outbox.ledger().buffered === 0);
    expect(lab.outbox.ledger().delivered).toBe(2);
  });

  it('what the broker acknowledged is sent again if it has forgotten us, and only then', async () => {
    for (const session_present of [true, false]) {
      await lab.connect();
      lab.send('feed', 1);
      lab.send('alarm', 2);
      await lab.outbox.committed();
      await lab.pump(
        heard,
        () => lab.outbox.dispatch.live_rows === 0 && lab.outbox.depth().get('alarm')?.rows === 1,
      );
      lab.outbox.dispatch.disconnected();
      await lab.connect({ session_present });
      const again = numbers(await lab.pump(heard)).sort(byValue);
      expect(again).toEqual(session_present ? [] : [1, 2]);
      lab.outbox.dispatch.disconnected();
    }
  });

  it('a message accepted while it is away is neither lost nor sent twice', async () => {
    await lab.connect();
    lab.send('alarm', 1);
    lab.outbox.dispatch.disconnected();
    await lab.connect();
    lab.send('alarm', 2);
    expect(numbers(await lab.pump(heard)).sort(byValue)).toEqual([1, 2]);
  });
});

describe('when the cloud has the last word', () => {
  it('a sync message stays on disk until the cloud has confirmed it', async () => {
    await lab.connect({ ack: 'cloud' });
    const seq = lab.send('alarm', 1);
    lab.send('feed', 2);
    await lab.pump(heard);
    await soon(() => lab.outbox.ledger().delivered === 1);
    expect(lab.outbox.depth().get('alarm')?.rows).toBe(1);
    await lab.outbox.confirm({ epoch: lab.outbox.epoch, ranges: [[seq, seq]] });
    expect(lab.outbox.depth().get('alarm')?.rows).toBe(0);
    expect(lab.outbox.ledger().delivered).toBe(2);
  });

  it('an unconfirmed message is sent again after a restart', async () => {
    await lab.connect({ ack: 'cloud' });
    lab.send('task', 1);
    await lab.pump(heard);
    await reopen();
    await lab.connect({ ack: 'cloud' });
    expect(numbers(await lab.pump(heard))).toEqual([1]);
  });

  it('automatic means the broker until the cloud has spoken once, also over a restart', async () => {
    await lab.connect({ ack: 'auto' });
    lab.send('task', 1);
    await lab.pump(heard);
    await soon(() => lab.outbox.depth().get('task')?.rows === 0);
    await lab.outbox.confirm({ epoch: lab.outbox.epoch, ranges: [] });
    await reopen();
    await lab.connect({ ack: 'auto' });
    lab.send('task', 2);
    await lab.pump(heard);
    await soon(() => lab.outbox.ledger().buffered === 1);
    expect(lab.outbox.depth().get('task')?.rows).toBe(1);
  });
});

describe('batches', () => {
  it('that the broker refuses become smaller until single messages are left', async () => {
    for (let n = 0; n < 64; n += 1) lab.send('feed', n);
    await lab.outbox.flush();
    await lab.connect();
    const sizes: number[] = [];
    const got: unknown[] = [];
    await lab.pump(
      (parcel) => {
        sizes.push(parcel.rows);
        if (parcel.rows > 1) return lab.outbox.dispatch.refused(parcel, 0x95, 'too large');
        got.push(...numbers([parcel]));
        return heard(parcel);
      },
      () => got.length === 64,
    );
    expect(Math.max(...sizes)).toBe(64);
    expect(got.toSorted(byValue)).toEqual(Array.from({ length: 64 }, (_, n) => n));
    for (let n = 0; n < 400; n += 1) lab.send('feed', n);
    lab.outbox.dispatch.disconnected();
    await lab.connect();
    const later = await lab.pump(heard);
    expect(Math.max(...later.map(({ rows }) => rows))).toBeGreaterThan(1);
  });

  it('of live telemetry leave once a second on metered links', async () => {
    await lab.connect({ packet_ms: 1_000 });
    for (let n = 0; n < 30; n += 1) lab.send('feed', n);
    expect(lab.outbox.dispatch.next({ backlog: true })).toBeUndefined();
    const parcels = await lab.pump(heard, () => lab.outbox.dispatch.live_rows === 0);
    expect(parcels.map(({ rows, backlog }) => [rows, backlog])).toEqual([[30, false]]);
    await soon(() => lab.outbox.ledger().delivered === 30);
  });
});

describe('a clock that becomes right later', () => {
  it('corrects what was observed before, in memory and on disk', async () => {
    let synced = false;
    await lab.outbox.close();
    const clock = {
      boot_id: 'b',
      stamp: () => ({ time_ms: synced ? 1_900_000_000_000 : 1_000, mono_ms: 5_000, synced }),
    };
    lab = await openLab(dir, { clock });
    lab.send('feed', 1);
    await lab.outbox.flush();
    synced = true;
    await soon(async () => {
      await lab.connect();
      const [message] = (await lab.pump(() => undefined)).flatMap(messagesIn);
      lab.outbox.dispatch.disconnected();
      return message?.time_quality === 'corrected' && message.time_ms === 1_900_000_000_000;
    });
  });
});
