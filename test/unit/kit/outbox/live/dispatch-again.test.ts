/** What is sent again: after a lost connection, and until the cloud has confirmed it. */
import { describe, expect, it } from 'vitest';
import { byValue, dispatchScene, numbers, soon } from '../../../../support/disk/dispatch-scene.ts';

const scene = dispatchScene();
const { heard } = scene;

describe('Dispatch after a lost connection', () => {
  it('sends messages in flight again', async () => {
    scene.lab.connect();
    scene.lab.send('feed', 1);
    scene.lab.send('alarm', 2);
    await scene.lab.pump(
      () => undefined,
      () => scene.lab.outbox.dispatch.live_rows === 0 && scene.lab.outbox.depth().get('alarm')?.rows === 1,
    );
    await scene.lab.pump(() => undefined);
    scene.lab.outbox.dispatch.disconnected();
    scene.lab.connect();
    expect(numbers(await scene.lab.pump(heard)).sort(byValue)).toEqual([1, 2]);
    await soon(() => scene.lab.outbox.ledger().buffered === 0);
    expect(scene.lab.outbox.ledger().delivered).toBe(2);
  });

  it('sends what was read from the disk ahead, and not sent, over the new connection', async () => {
    await scene.reopen({ batch_rows: 1 });
    const all = Array.from({ length: 300 }, (_, n) => n);
    for (const n of all) scene.lab.send('feed', n);
    await scene.lab.outbox.flush();
    scene.lab.connect();
    await soon(() => scene.next() !== undefined);
    scene.lab.outbox.dispatch.disconnected();
    scene.lab.connect();
    expect(numbers(await scene.lab.pump(heard)).sort(byValue)).toEqual(all);
    await soon(() => scene.lab.outbox.ledger().buffered === 0);
  });

  it('sends without a pause what was still being read when the connection was lost', async () => {
    await scene.reopen({ batch_rows: 1 });
    const all = Array.from({ length: 300 }, (_, n) => n);
    for (const n of all) scene.lab.send('feed', n);
    await scene.lab.outbox.flush();
    const { dispatch } = scene.lab.outbox;
    let taken = 0;
    const onReady = (): void => {
      if (taken > 0 || !dispatch.next({ backlog: true })) return;
      taken += 1;
      // The next page is read now.
      scene.disk.hang();
    };
    dispatch.connected({ session_present: true, packet_ms: 0, ack: 'broker', onReady });
    await soon(() => taken > 0);
    dispatch.disconnected();
    scene.lab.connect();
    scene.disk.heal();
    expect(numbers(await scene.lab.pump(heard)).sort(byValue)).toEqual(all);
  });

  it('replays acknowledged messages only if the broker has lost the session', async () => {
    for (const session_present of [true, false]) {
      scene.lab.connect();
      scene.lab.send('feed', 1);
      scene.lab.send('alarm', 2);
      await scene.lab.outbox.committed();
      await scene.lab.pump(
        heard,
        () => scene.lab.outbox.dispatch.live_rows === 0 && scene.lab.outbox.depth().get('alarm')?.rows === 1,
      );
      scene.lab.outbox.dispatch.disconnected();
      scene.lab.connect({ session_present });
      const again = numbers(await scene.lab.pump(heard)).sort(byValue);
      expect(again).toEqual(session_present ? [] : [1, 2]);
      scene.lab.outbox.dispatch.disconnected();
    }
  });

  it('sends a message accepted during the outage exactly once', async () => {
    scene.lab.connect();
    scene.lab.send('alarm', 1);
    scene.lab.outbox.dispatch.disconnected();
    scene.lab.connect();
    scene.lab.send('alarm', 2);
    expect(numbers(await scene.lab.pump(heard)).sort(byValue)).toEqual([1, 2]);
  });
});

describe('Dispatch with cloud acknowledgements', () => {
  it('keeps a sync message on disk until the cloud has confirmed it', async () => {
    scene.lab.connect({ ack: 'cloud' });
    const seq = scene.lab.send('alarm', 1);
    scene.lab.send('feed', 2);
    await scene.lab.pump(heard);
    await soon(() => scene.lab.outbox.ledger().delivered === 1);
    expect(scene.lab.outbox.depth().get('alarm')?.rows).toBe(1);
    scene.lab.outbox.confirm({ epoch: scene.lab.outbox.epoch, ranges: [[seq, seq]] });
    await soon(() => scene.lab.outbox.depth().get('alarm')?.rows === 0);
    expect(scene.lab.outbox.ledger().delivered).toBe(2);
  });

  it('keeps what was buffered on disk until the cloud has confirmed it, of lazy lanes too', async () => {
    const seqs = [scene.lab.send('feed', 1), scene.lab.send('kit', 2)];
    await scene.lab.outbox.flush();
    scene.lab.connect({ ack: 'cloud' });
    expect(numbers(await scene.lab.pump(heard)).sort(byValue)).toEqual([1, 2]);
    await scene.lab.outbox.flush();
    expect(scene.lab.outbox.ledger()).toMatchObject({ buffered: 2, delivered: 0, balanced: true });
    scene.lab.outbox.confirm({
      epoch: scene.lab.outbox.epoch,
      ranges: seqs.map((seq) => [seq, seq] as const),
    });
    await soon(() => scene.lab.outbox.ledger().delivered === 2);
    expect(scene.lab.outbox.ledger()).toMatchObject({ buffered: 0, balanced: true });
  });

  it('sends what the cloud has not confirmed again when the broker has forgotten the session', async () => {
    const buffered = scene.lab.send('feed', 1);
    await scene.lab.outbox.flush();
    scene.lab.connect({ ack: 'cloud' });
    await scene.lab.pump(heard);
    scene.lab.send('feed', 2);
    const confirmed = scene.lab.send('feed', 3);
    await scene.lab.pump(heard, () => scene.lab.outbox.ledger().delivered === 2);
    scene.lab.outbox.confirm({ epoch: scene.lab.outbox.epoch, ranges: [[confirmed, confirmed]] });
    scene.lab.outbox.dispatch.disconnected();
    scene.lab.connect({ ack: 'cloud', session_present: false });
    const again: unknown[] = [];
    await scene.lab.pump(
      (outgoing) => {
        again.push(...numbers([outgoing]));
        heard(outgoing);
      },
      () => again.length >= 2,
    );
    expect(again.toSorted(byValue)).toEqual([1, 2]);
    scene.lab.outbox.dispatch.disconnected();
    scene.lab.connect({ ack: 'cloud', session_present: true });
    scene.lab.outbox.dispatch.disconnected();
    again.length = 0;
    scene.lab.connect({ ack: 'cloud', session_present: false });
    await scene.lab.pump(
      (outgoing) => {
        again.push(...numbers([outgoing]));
        heard(outgoing);
      },
      () => again.length >= 2,
    );
    expect(again.toSorted(byValue)).toEqual([1, 2]);
    scene.lab.outbox.confirm({ epoch: scene.lab.outbox.epoch, ranges: [[buffered, buffered]] });
    await soon(() => scene.lab.outbox.ledger().buffered === 0);
  });

  it('sends an unconfirmed message again after a restart', async () => {
    scene.lab.connect({ ack: 'cloud' });
    scene.lab.send('task', 1);
    await scene.lab.pump(heard);
    await scene.reopen();
    scene.lab.connect({ ack: 'cloud' });
    expect(numbers(await scene.lab.pump(heard))).toEqual([1]);
  });

  it('follows the broker in auto mode until the first cloud acknowledgement, also across a restart', async () => {
    scene.lab.connect({ ack: 'auto' });
    expect(scene.lab.outbox.dispatch.delivery.delivered_to).toBe('broker');
    scene.lab.send('task', 1);
    await scene.lab.pump(heard);
    await soon(() => scene.lab.outbox.depth().get('task')?.rows === 0);
    scene.lab.outbox.confirm({ epoch: scene.lab.outbox.epoch, ranges: [] });
    await scene.reopen();
    scene.lab.connect({ ack: 'auto' });
    expect(scene.lab.outbox.dispatch.delivery.delivered_to).toBe('cloud');
    scene.lab.send('task', 2);
    await scene.lab.pump(heard);
    await soon(() => scene.lab.outbox.ledger().buffered === 1);
    expect(scene.lab.outbox.depth().get('task')?.rows).toBe(1);
  });
});
