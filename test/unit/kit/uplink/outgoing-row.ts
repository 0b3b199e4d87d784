/** A message of one row, as the buffer gives it to the uplink. */
import type { OutgoingMessage } from '../../../../src/kit/outbox/live/outgoing.ts';

export function outgoingRow(id: number, changes: Partial<OutgoingMessage> = {}): OutgoingMessage {
  const { lane = 'feed', channel = 'feed/a/gps' } = changes;
  const row = {
    id,
    lane,
    channel,
    time_ms: 0,
    mono_ms: null,
    body: '{}',
    time_quality: undefined,
  } as const;
  return {
    lane,
    channel,
    payload: '{}',
    retain: false,
    rows: 1,
    backlog: false,
    removal: false,
    content: { kind: 'row', row },
    ...changes,
  };
}
