/** The time of observation of a message, where it is not that of the message. */
import { partnerFix } from '../../../contract/partners.ts';
import type { Message } from '../../ingest/read-message.ts';

/**
 * Returns the message with the time of its observation: a fix that was pushed at the kit with a `timestamp` is as old as that
 * says, while the message has the time of the push.
 */
export function observed(message: Message): Message {
  const { channel, data, time_ms } = message;
  if (channel.kind !== 'feed' || channel.feed !== 'gps') return message;
  // Positions of drones have no source; to find that out with the schema costs more than to store them.
  if (typeof data !== 'object' || data === null || !('source' in data)) return message;
  const fix = partnerFix.safeParse(data).data;
  const fix_ms = fix ? Date.parse(fix.timestamp) : time_ms;
  return fix_ms < time_ms ? { ...message, time_ms: fix_ms } : message;
}
