/** What the broker acknowledged within the last second is sent again when the broker has forgotten the session. */
import { describe, expect, it } from 'vitest';
import type { OutgoingMessage } from '../../../../../src/kit/outbox/live/outgoing.ts';
import { Replay } from '../../../../../src/kit/outbox/live/delivery.ts';
import { rowId } from '../../../../../src/kit/outbox/row.ts';
import { outgoing } from '../../../../support/disk/messages.ts';
import { bufferBytes } from '../../../../support/process-stats.ts';

const replayed = (id: number, payload: string | Uint8Array = '{}'): OutgoingMessage =>
  outgoing({ payload, content: { kind: 'replay', id } });

function idsOf(replay: Replay): number[] {
  const ids: number[] = [];
  for (let next = replay.shift(); next; next = replay.shift())
    if (next.content.kind === 'replay') ids.push(next.content.id);
  return ids;
}

describe('Replay', () => {
  it('sends the messages of the last second again, in order, when the session is gone', () => {
    const replay = new Replay();
    replay.remember(replayed(1), 0);
    replay.remember(replayed(2), 600);
    replay.remember(replayed(3), 1_200);
    replay.connected({ session_present: false });
    expect(idsOf(replay)).toEqual([2, 3]);
  });

  it('sends nothing again when the broker has kept the session, nor at the connection after', () => {
    const replay = new Replay();
    replay.remember(replayed(1), 0);
    replay.connected({ session_present: true });
    replay.connected({ session_present: false });
    expect(idsOf(replay)).toEqual([]);
  });

  it('forgets what is older than a second, also while nothing new is acknowledged', () => {
    const replay = new Replay();
    replay.remember(replayed(1), 0);
    replay.forget(1_000);
    replay.connected({ session_present: false });
    expect(idsOf(replay)).toEqual([]);
  });

  it('keeps a minute of what the cloud has not acknowledged, where it acknowledges', () => {
    const replay = new Replay();
    replay.hasCloudAcks = true;
    const row = (id: number): OutgoingMessage => ({
      ...replayed(id),
      content: {
        kind: 'row',
        row: {
          id,
          lane: 'feed',
          channel: 'feed/x/gps',
          time_ms: 0,
          mono_ms: null,
          body: '{}',
          time_quality: undefined,
        },
      },
    });
    const ids = [1, 2, 3].map((seq) => rowId({ epoch: 5, seq }));
    ids.forEach((id, at) => replay.remember(row(id), at * 29_000));
    replay.cloudStored({ epoch: 5, ranges: [[2, 2]] });
    replay.forget(59_000);
    replay.connected({ session_present: false });
    expect(idsOf(replay)).toEqual([ids[0], ids[2]]);
  });

  it('keeps at most 1,024 messages, the newest', () => {
    const replay = new Replay();
    for (let id = 1; id <= 1_030; id += 1) replay.remember(replayed(id), 0);
    replay.connected({ session_present: false });
    const ids = idsOf(replay);
    expect([ids.length, ids.at(0), ids.at(-1)]).toEqual([1_024, 7, 1_030]);
  });

  it('keeps at most 4 MB, the newest', () => {
    const replay = new Replay();
    const megabyte = 'x'.repeat(1024 * 1024);
    for (let id = 1; id <= 6; id += 1) replay.remember(replayed(id, megabyte), 0);
    replay.connected({ session_present: false });
    expect(idsOf(replay)).toEqual([3, 4, 5, 6]);
  });

  it('takes a message back that did not arrive this time either, and sends it after the others', () => {
    const replay = new Replay();
    replay.remember(replayed(1), 0);
    replay.remember(replayed(2), 0);
    replay.connected({ session_present: false });
    const first = replay.shift();
    if (first) replay.requeue(first);
    expect(idsOf(replay)).toEqual([2, 1]);
  });

  it('releases the payloads that it has forgotten', () => {
    const replay = new Replay();
    const payload_bytes = 64 * 1024;
    const before = bufferBytes();
    for (let second = 0; second < 500; second += 1)
      replay.remember(replayed(second, Buffer.alloc(payload_bytes)), second * 1_000);
    expect(bufferBytes() - before).toBeLessThanOrEqual(2 * payload_bytes);
    replay.connected({ session_present: false });
    expect(idsOf(replay)).toEqual([499]);
  });
});
