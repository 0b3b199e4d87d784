import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeDirectory } from '../../../support/temporary.ts';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { eventually } from '../../../support/eventually.ts';
import { messagesIn, openLab, type OutboxLab } from '../../../support/disk/outbox-lab.ts';
import type { Lane } from '../../../../src/contract/lanes.ts';
import type { OutgoingMessage } from '../../../../src/outbox/live/outgoing.ts';
import { texts } from '../../../../src/outbox/texts.ts';

let dir: string;
let lab: OutboxLab;
const heard = (outgoing: OutgoingMessage): void =>
  lab.outbox.dispatch.acknowledged(outgoing, { has_subscribers: true });
const soon = async (holds: () => boolean | Promise<boolean>): Promise<void> =>
  eventually('the outbox gets there', holds);
const byValue = (a: unknown, b: unknown): number => Number(a) - Number(b);
const numbers = (messages: readonly OutgoingMessage[]): unknown[] =>
  messages.flatMap(messagesIn).map(({ data }) => data['n']);

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

describe('Dispatch with a broker connection', () => {
  beforeEach(() => lab.connect());

  it('sends telemetry at once without writing it to disk', async () => {
    lab.send('feed', 1);
    const outgoing = lab.outbox.dispatch.next({ backlog: true });
    expect(outgoing && numbers([outgoing])).toEqual([1]);
    if (outgoing) heard(outgoing);
    await lab.outbox.flush();
    expect(lab.outbox.depth().get('feed')?.rows).toBe(0);
  });

  it('sends a task report only after it is on disk, before telemetry that was accepted earlier', async () => {
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

  it('counts an acknowledged message as delivered and deletes it from disk', async () => {
    lab.send('alarm', 1);
    await lab.pump(heard);
    await soon(() => lab.outbox.ledger().delivered === 1);
    await soon(() => lab.outbox.depth().get('alarm')?.rows === 0);
  });

  it('writes telemetry that is not acknowledged within a second, without sending it twice', async () => {
    lab.send('feed', 1);
    const outgoing = lab.outbox.dispatch.next({ backlog: true });
    await soon(() => lab.outbox.depth().get('feed')?.rows === 1);
    expect(lab.outbox.dispatch.next({ backlog: true })).toBeUndefined();
    if (outgoing) heard(outgoing);
    await soon(() => lab.outbox.depth().get('feed')?.rows === 0);
    expect(lab.outbox.ledger()).toMatchObject({ accepted: 1, delivered: 1, buffered: 0 });
  });

  it('quarantines a refused message with its reason and can retry it', async () => {
    lab.send('feed', 1);
    lab.send('alarm', 2);
    await lab.pump((outgoing) => lab.outbox.dispatch.quarantine(outgoing, 0x87, 'not authorised'));
    await soon(() => lab.outbox.ledger().quarantined === 2);
    const quarantine = await lab.outbox.quarantine.list();
    expect(quarantine.map(({ code, reason }) => [code, reason])).toEqual([
      [0x87, 'not authorised'],
      [0x87, 'not authorised'],
    ]);
    expect(await lab.outbox.quarantine.retry(undefined)).toBe(2);
    expect(numbers(await lab.pump(heard)).sort(byValue)).toEqual([1, 2]);
  });

  it('keeps a message without subscribers, pauses its kind and sends other kinds', async () => {
    lab.send('feed', 1);
    await lab.pump(
      (outgoing) => lab.outbox.dispatch.acknowledged(outgoing, { has_subscribers: false }),
      () => lab.outbox.dispatch.withoutSubscribers().length > 0,
    );
    expect(lab.outbox.dispatch.withoutSubscribers()).toEqual(['feed']);
    lab.send('feed', 2);
    lab.send('alarm', 3);
    const others = await lab.pump(heard, () => lab.outbox.dispatch.withoutSubscribers().length === 0);
    expect(numbers(others)).toContain(3);
    expect([...new Set(numbers([...others, ...(await lab.pump(heard))]))].sort(byValue)).toEqual([1, 2, 3]);
  });

  it('counts a retained message without subscribers as delivered', async () => {
    lab.send('presence', 1);
    await lab.pump((outgoing) => lab.outbox.dispatch.acknowledged(outgoing, { has_subscribers: false }));
    await soon(() => lab.outbox.ledger().delivered === 1);
    expect(lab.outbox.dispatch.withoutSubscribers()).toEqual([]);
  });

  it('drops a message above the size limit with its reason and sends the others', async () => {
    lab.outbox.append({ lane: 'feed', channel: 'feed/a/gps', data: { text: 'x'.repeat(300_000) } });
    lab.send('feed', 2);
    expect(numbers(await lab.pump(heard))).toEqual([2]);
    expect(lab.outbox.ledger().dropped).toEqual({ too_large: 1 });
    expect(lab.lines).toContain(texts.too_large);
  });
});

describe('Dispatch without a broker connection', () => {
  it('keeps all messages and returns them after a restart by importance, oldest first', async () => {
    for (let n = 0; n < 20; n += 1) lab.send('feed', n);
    lab.send('alarm', 100);
    lab.send('task', 200);
    await reopen();
    lab.connect();
    const messages = await lab.pump(heard);
    expect(numbers(messages)).toEqual([200, 100, ...Array.from({ length: 20 }, (_, n) => n)]);
    expect(messages.every(({ backlog }) => backlog)).toBe(true);
    expect(messages.at(-1)?.channel).toBe('batch');
  });

  it('keeps only the newest message of a retained topic', async () => {
    for (let n = 0; n < 5; n += 1) lab.send('presence', n);
    await lab.outbox.committed();
    lab.connect();
    expect(numbers(await lab.pump(heard))).toEqual([4]);
    expect(lab.outbox.ledger().dropped).toEqual({ superseded: 4 });
  });

  it('sends live messages before a backlog that still gets its share', async () => {
    await lab.outbox.close();
    lab = await openLab(dir, { batch_rows: 1 });
    for (let n = 0; n < 3_000; n += 1) lab.send('feed', n);
    await lab.outbox.flush();
    lab.connect();
    await soon(() => lab.outbox.dispatch.next({ backlog: true }) !== undefined);
    for (let n = 0; n < 40; n += 1) lab.send('feed', 10_000 + n);
    const next = Array.from({ length: 40 }, () => lab.outbox.dispatch.next({ backlog: true }));
    const backlog = next.filter((outgoing) => outgoing?.backlog).length;
    expect(backlog).toBeGreaterThanOrEqual(3);
    expect(backlog).toBeLessThanOrEqual(5);
  });
});

describe('Dispatch while disk writes fail', () => {
  it('counts messages of each lane in memory, and on disk after writes resume', async () => {
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

describe('Batch size', () => {
  it('shrinks after each refusal down to single messages', async () => {
    for (let n = 0; n < 64; n += 1) lab.send('feed', n);
    await lab.outbox.flush();
    lab.connect();
    const sizes: number[] = [];
    const got: unknown[] = [];
    await lab.pump(
      (outgoing) => {
        sizes.push(outgoing.rows);
        if (outgoing.rows > 1) return lab.outbox.dispatch.refused(outgoing, 0x95, 'too large');
        got.push(...numbers([outgoing]));
        return heard(outgoing);
      },
      () => got.length === 64,
    );
    expect(Math.max(...sizes)).toBe(64);
    expect(got.toSorted(byValue)).toEqual(Array.from({ length: 64 }, (_, n) => n));
    for (let n = 0; n < 400; n += 1) lab.send('feed', n);
    lab.outbox.dispatch.disconnected();
    lab.connect();
    const later = await lab.pump(heard);
    expect(Math.max(...later.map(({ rows }) => rows))).toBeGreaterThan(1);
  });

  it('packs live telemetry once a second on metered links', async () => {
    lab.connect({ packet_ms: 1_000 });
    for (let n = 0; n < 30; n += 1) lab.send('feed', n);
    expect(lab.outbox.dispatch.next({ backlog: true })).toBeUndefined();
    const messages = await lab.pump(heard, () => lab.outbox.dispatch.live_rows === 0);
    expect(messages.map(({ rows, backlog }) => [rows, backlog])).toEqual([[30, false]]);
    await soon(() => lab.outbox.ledger().delivered === 30);
  });
});

describe('Dispatch while the link in use changes', () => {
  it('follows the pace of the link during one connection', async () => {
    lab.connect();
    lab.send('feed', 0);
    expect(lab.outbox.dispatch.next({ backlog: false })?.rows).toBe(1);
    lab.outbox.dispatch.setPacketMs(1_000);
    for (let n = 1; n < 30; n += 1) lab.send('feed', n);
    expect(lab.outbox.dispatch.next({ backlog: false })).toBeUndefined();
    lab.outbox.dispatch.setPacketMs(0);
    expect(lab.outbox.dispatch.next({ backlog: false })?.rows).toBe(1);
  });
});

describe('Dispatch after clock synchronisation', () => {
  it('corrects the times of earlier messages in memory and on disk', async () => {
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
      lab.connect();
      const [message] = (await lab.pump(() => undefined)).flatMap(messagesIn);
      lab.outbox.dispatch.disconnected();
      return message?.time_quality === 'corrected' && message.time_ms === 1_900_000_000_000;
    });
  });
});
