/** Messages as the outbox has them in memory. */
import type { Lane } from '../../../src/contract/lanes.ts';
import type { Live, OutgoingMessage } from '../../../src/kit/outbox/live/outgoing.ts';
import { rowId } from '../../../src/kit/outbox/row.ts';

let seq = 0;

/** The next message of this run. */
export function live(lane: Lane, changes: Partial<Live> = {}): Live {
  seq += 1;
  return {
    row: { id: rowId({ epoch: 1, seq }), lane, channel: `${lane}/x`, time_ms: 0, mono_ms: null, body: '{}' },
    since_ms: 0,
    state: { disk: 'no', place: 'queued', is_held: false },
    order: 0,
    from_disk_only: false,
    is_behind: false,
    ...changes,
  };
}

/** A message for the uplink. */
export function outgoing(
  changes: Partial<OutgoingMessage> & Pick<OutgoingMessage, 'content'>,
): OutgoingMessage {
  const flags = { retain: false, removal: false, backlog: false };
  return { lane: 'feed', channel: 'feed/a/gps', payload: '{}', rows: 1, ...flags, ...changes };
}

/** One of one row, as the buffer gives it. */
export function outgoingRow(id: number, changes: Partial<OutgoingMessage> = {}): OutgoingMessage {
  const { lane = 'feed', channel = 'feed/a/gps' } = changes;
  const row = { id, lane, channel, time_ms: 0, mono_ms: null, body: '{}', time_quality: undefined };
  return outgoing({ content: { kind: 'row', row }, ...changes });
}
