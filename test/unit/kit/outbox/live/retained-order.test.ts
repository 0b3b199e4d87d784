/** The broker keeps the last value of a retained topic: so the last one that the kit sends must be the newest. */
import { afterEach, describe, expect, it } from 'vitest';
import type { OutgoingMessage } from '../../../../../src/kit/outbox/live/outgoing.ts';
import { eventually } from '../../../../support/eventually.ts';
import { dispatchScene } from '../../../../support/disk/dispatch-scene.ts';
import { messagesIn } from '../../../../support/disk/outbox-lab.ts';

const scene = dispatchScene();
const { heard } = scene;
/** What was handed out, newest last. */
const handed: OutgoingMessage[] = [];

afterEach(() => {
  const newest = new Map<string, number>();
  for (const outgoing of handed.splice(0)) {
    const [message] = messagesIn(outgoing);
    expect(message?.seq).toBeGreaterThanOrEqual(newest.get(outgoing.channel) ?? 0);
    newest.set(outgoing.channel, message?.seq ?? 0);
  }
});

function take(): OutgoingMessage | undefined {
  const outgoing = scene.next();
  if (outgoing) handed.push(outgoing);
  return outgoing;
}

async function takeAll(answer: (outgoing: OutgoingMessage) => void = heard): Promise<void> {
  await eventually('nothing is left', () => {
    for (let outgoing = take(); outgoing; outgoing = take()) answer(outgoing);
    return scene.lab.outbox.ledger().buffered === 0;
  });
}

const valueOf = (outgoing: OutgoingMessage | undefined): unknown =>
  outgoing && messagesIn(outgoing)[0]?.data?.['n'];

describe('a retained topic', () => {
  it('never has an older value from the read-ahead sent after a newer live one', async () => {
    for (let n = 0; n < 50; n += 1) scene.lab.send('presence', 1, `a${n}`);
    await scene.lab.outbox.flush();
    scene.lab.connect();
    await eventually('the backlog is read ahead', () => take() !== undefined);
    scene.lab.send('presence', 2, 'a49');
    await scene.lab.outbox.committed();
    const newer = take();
    expect([newer?.channel, valueOf(newer)]).toEqual(['asset/a49', 2]);
    for (const outgoing of handed.slice()) heard(outgoing);
    await takeAll();
    expect(handed.filter(({ channel }) => channel === 'asset/a49').map(valueOf)).toEqual([2]);
    expect(scene.lab.outbox.ledger()).toMatchObject({ delivered: 50, dropped: { superseded: 1 } });
  });

  it('never has an older value replayed after a newer one, when the broker has forgotten the session', async () => {
    scene.lab.connect();
    for (const asset of ['a', 'b']) scene.lab.send('presence', 1, asset);
    await takeAll();
    scene.lab.outbox.dispatch.disconnected();
    scene.lab.connect({ session_present: false });
    scene.lab.send('presence', 2, 'a');
    await scene.lab.outbox.committed();
    await takeAll();
    expect(
      handed
        .map((outgoing) => `${outgoing.channel} ${String(valueOf(outgoing))}`)
        .slice(2)
        .sort(),
    ).toEqual(['asset/a 2', 'asset/b 1']);
  });

  it('counts a value that arrived as delivered, not as superseded by a newer value', async () => {
    scene.lab.connect();
    scene.lab.send('presence', 1, 'a');
    await scene.lab.outbox.committed();
    const first = take();
    scene.lab.send('presence', 2, 'a');
    await scene.lab.outbox.committed();
    if (first) heard(first);
    await takeAll();
    expect(scene.lab.outbox.ledger()).toMatchObject({ delivered: 2, dropped: {} });
  });

  it('counts a value as delivered that the broker acknowledged after a newer one while the disk hung', async () => {
    scene.lab.connect();
    for (const n of [1, 2]) scene.lab.send('presence', n, 'a');
    await scene.lab.outbox.committed();
    const [older, newer] = [take(), take()];
    scene.disk.hang();
    if (newer) heard(newer);
    await eventually('the newer one is being removed', () => scene.lab.outbox.unanswered_ms() > 0);
    if (older) heard(older);
    scene.disk.heal();
    await takeAll();
    expect(scene.lab.outbox.ledger()).toMatchObject({ delivered: 2, dropped: {} });
  });

  it.each([{ n: 2 }, null])(
    'does not send an older value again that came back after the broker had a newer one (%j)',
    async (data) => {
      scene.lab.connect();
      scene.lab.send('presence', 1, 'a');
      await scene.lab.outbox.committed();
      const older = take();
      scene.lab.outbox.append({ lane: 'presence', channel: 'asset/a', data });
      await scene.lab.outbox.committed();
      const newer = take();
      if (newer) heard(newer);
      await scene.lab.outbox.committed();
      if (older) scene.lab.outbox.dispatch.requeue(older);
      await takeAll();
      expect(handed).toEqual([older, newer]);
      expect(scene.lab.outbox.ledger()).toMatchObject({ delivered: 1, dropped: { superseded: 1 } });
    },
  );

  it('has the older value superseded on disk although the newer one left from memory while the disk refused', async () => {
    scene.lab.send('presence', 1, 'a');
    await scene.lab.outbox.flush();
    scene.disk.refuse();
    scene.lab.send('presence', 2, 'a');
    await eventually('failing', () => scene.lab.outbox.health().state === 'failing');
    scene.lab.connect();
    await eventually('the newer one leaves', () => {
      const outgoing = take();
      if (outgoing && valueOf(outgoing) === 2) heard(outgoing);
      return outgoing !== undefined && valueOf(outgoing) === 2;
    });
    scene.disk.heal();
    await takeAll();
    await scene.reopen();
    scene.lab.connect();
    await takeAll();
    expect(handed.map(valueOf)).toEqual([2]);
  });

  it('does not send an older value after a restart when the newer one was delivered', async () => {
    scene.lab.send('presence', 1, 'a');
    await scene.lab.outbox.flush();
    scene.lab.connect();
    await eventually('the old value is in flight', () => take() !== undefined);
    scene.lab.send('presence', 2, 'a');
    await scene.lab.outbox.committed();
    const newer = take();
    expect(valueOf(newer)).toBe(2);
    if (newer) heard(newer);
    await scene.lab.outbox.committed();
    await scene.reopen();
    scene.lab.connect();
    await takeAll();
    expect(handed.map(valueOf)).toEqual([1, 2]);
  });

  it('has no older value published after a restart when the newest one was published and not acknowledged', async () => {
    scene.lab.connect();
    for (let n = 1; n <= 3; n += 1) scene.lab.send('presence', n, 'a');
    await scene.lab.outbox.committed();
    await eventually('all are in flight', () => {
      while (take());
      return handed.length === 3;
    });
    scene.lab.outbox.dispatch.disconnected();
    await scene.reopen();
    scene.lab.connect();
    await takeAll();
    expect(handed.map(valueOf)).toEqual([1, 2, 3, 3]);
  });

  it('is cleared by a removal with a stamp, in order with its values', async () => {
    scene.lab.connect();
    scene.lab.send('presence', 1, 'a');
    await scene.lab.outbox.committed();
    await takeAll();
    scene.lab.outbox.append({ lane: 'presence', channel: 'asset/a', data: null });
    await scene.lab.outbox.committed();
    await takeAll();
    const removal = handed.at(-1);
    expect([removal?.removal, removal?.retain, removal?.payload.toString().endsWith('"data":null}')]).toEqual(
      [true, false, true],
    );
  });
});
