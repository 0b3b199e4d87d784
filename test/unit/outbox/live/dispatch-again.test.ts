/** What is sent again: after a lost connection, and until the cloud has confirmed it. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeDirectory } from '../../../support/temporary.ts';
import { rm } from 'node:fs/promises';
import { eventually, letPass } from '../../../support/eventually.ts';
import { messagesIn, openLab, type OutboxLab } from '../../../support/disk/outbox-lab.ts';
import type { OutgoingMessage } from '../../../../src/outbox/live/outgoing.ts';

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

describe('Dispatch after a lost connection', () => {
  it('sends messages in flight again', async () => {
    lab.connect();
    lab.send('feed', 1);
    lab.send('alarm', 2);
    await lab.pump(
      () => undefined,
      () => lab.outbox.dispatch.live_rows === 0 && lab.outbox.depth().get('alarm')?.rows === 1,
    );
    await lab.pump(() => undefined);
    lab.outbox.dispatch.disconnected();
    lab.connect();
    expect(numbers(await lab.pump(heard)).sort(byValue)).toEqual([1, 2]);
    await soon(() => lab.outbox.ledger().buffered === 0);
    expect(lab.outbox.ledger().delivered).toBe(2);
  });

  it('sends what was read from the disk ahead, and not sent, over the new connection', async () => {
    await lab.outbox.close();
    lab = await openLab(dir, { batch_rows: 1 });
    const all = Array.from({ length: 300 }, (_, n) => n);
    for (const n of all) lab.send('feed', n);
    await lab.outbox.flush();
    lab.connect();
    await soon(() => lab.outbox.dispatch.next({ backlog: true }) !== undefined);
    lab.outbox.dispatch.disconnected();
    lab.connect();
    expect(numbers(await lab.pump(heard)).sort(byValue)).toEqual(all);
    await soon(() => lab.outbox.ledger().buffered === 0);
  });

  it('replays acknowledged messages only if the broker has lost the session', async () => {
    for (const session_present of [true, false]) {
      lab.connect();
      lab.send('feed', 1);
      lab.send('alarm', 2);
      await lab.outbox.committed();
      await lab.pump(
        heard,
        () => lab.outbox.dispatch.live_rows === 0 && lab.outbox.depth().get('alarm')?.rows === 1,
      );
      lab.outbox.dispatch.disconnected();
      lab.connect({ session_present });
      const again = numbers(await lab.pump(heard)).sort(byValue);
      expect(again).toEqual(session_present ? [] : [1, 2]);
      lab.outbox.dispatch.disconnected();
    }
  });

  it('sends a message accepted during the outage exactly once', async () => {
    lab.connect();
    lab.send('alarm', 1);
    lab.outbox.dispatch.disconnected();
    lab.connect();
    lab.send('alarm', 2);
    expect(numbers(await lab.pump(heard)).sort(byValue)).toEqual([1, 2]);
  });
});

describe('Dispatch with cloud acknowledgements', () => {
  it('keeps a sync message on disk until the cloud has confirmed it', async () => {
    lab.connect({ ack: 'cloud' });
    const seq = lab.send('alarm', 1);
    lab.send('feed', 2);
    await lab.pump(heard);
    await soon(() => lab.outbox.ledger().delivered === 1);
    expect(lab.outbox.depth().get('alarm')?.rows).toBe(1);
    lab.outbox.confirm({ epoch: lab.outbox.epoch, ranges: [[seq, seq]] });
    await soon(() => lab.outbox.depth().get('alarm')?.rows === 0);
    expect(lab.outbox.ledger().delivered).toBe(2);
  });

  it('keeps what was buffered on disk until the cloud has confirmed it, of lazy lanes too', async () => {
    const seqs = [lab.send('feed', 1), lab.send('kit', 2)];
    await lab.outbox.flush();
    lab.connect({ ack: 'cloud' });
    expect(numbers(await lab.pump(heard)).sort(byValue)).toEqual([1, 2]);
    await letPass(50);
    expect(lab.outbox.ledger()).toMatchObject({ buffered: 2, delivered: 0, balanced: true });
    lab.outbox.confirm({ epoch: lab.outbox.epoch, ranges: seqs.map((seq) => [seq, seq] as const) });
    await soon(() => lab.outbox.ledger().delivered === 2);
    expect(lab.outbox.ledger()).toMatchObject({ buffered: 0, balanced: true });
  });

  it('sends what the cloud has not confirmed again when the broker has forgotten the session', async () => {
    const buffered = lab.send('feed', 1);
    await lab.outbox.flush();
    lab.connect({ ack: 'cloud' });
    await lab.pump(heard);
    lab.send('feed', 2);
    const confirmed = lab.send('feed', 3);
    await lab.pump(heard, () => lab.outbox.ledger().delivered === 2);
    lab.outbox.confirm({ epoch: lab.outbox.epoch, ranges: [[confirmed, confirmed]] });
    lab.outbox.dispatch.disconnected();
    lab.connect({ ack: 'cloud', session_present: false });
    const again: unknown[] = [];
    await lab.pump(
      (outgoing) => {
        again.push(...numbers([outgoing]));
        heard(outgoing);
      },
      () => again.length >= 2,
    );
    expect(again.toSorted(byValue)).toEqual([1, 2]);
    lab.outbox.dispatch.disconnected();
    lab.connect({ ack: 'cloud', session_present: true });
    lab.outbox.dispatch.disconnected();
    again.length = 0;
    lab.connect({ ack: 'cloud', session_present: false });
    await lab.pump(
      (outgoing) => {
        again.push(...numbers([outgoing]));
        heard(outgoing);
      },
      () => again.length >= 2,
    );
    expect(again.toSorted(byValue)).toEqual([1, 2]);
    lab.outbox.confirm({ epoch: lab.outbox.epoch, ranges: [[buffered, buffered]] });
    await soon(() => lab.outbox.ledger().buffered === 0);
  });

  it('sends an unconfirmed message again after a restart', async () => {
    lab.connect({ ack: 'cloud' });
    lab.send('task', 1);
    await lab.pump(heard);
    await reopen();
    lab.connect({ ack: 'cloud' });
    expect(numbers(await lab.pump(heard))).toEqual([1]);
  });

  it('follows the broker in auto mode until the first cloud acknowledgement, also across a restart', async () => {
    lab.connect({ ack: 'auto' });
    expect(lab.outbox.dispatch.delivery.delivered_to).toBe('broker');
    lab.send('task', 1);
    await lab.pump(heard);
    await soon(() => lab.outbox.depth().get('task')?.rows === 0);
    lab.outbox.confirm({ epoch: lab.outbox.epoch, ranges: [] });
    await reopen();
    lab.connect({ ack: 'auto' });
    expect(lab.outbox.dispatch.delivery.delivered_to).toBe('cloud');
    lab.send('task', 2);
    await lab.pump(heard);
    await soon(() => lab.outbox.ledger().buffered === 1);
    expect(lab.outbox.depth().get('task')?.rows).toBe(1);
  });
});
