/** Leaves out messages of a backlog whose content a newer message of the same commit replaces: there are thousands of them. */
import type { Message } from '../../ingest/read-message.ts';
import { channelOf } from '../../../contract/topics.ts';

/** The messages that can change anything, in their order. */
export function withoutSuperseded(
  messages: readonly Message[],
  historical: ReadonlySet<Message>,
): readonly Message[] {
  if (messages.length < 2 || historical.size === 0) return messages;
  const seen = new Set<string>();
  const kept = new Set<Message>();
  const newestFirst = [...messages].sort((a, b) => b.epoch - a.epoch || b.seq - a.seq);
  for (const message of newestFirst) {
    const places = placesOf(message);
    if (!places || !historical.has(message) || places.some((place) => !seen.has(place))) kept.add(message);
    for (const place of places ?? []) seen.add(place);
  }
  return messages.filter((message) => kept.has(message));
}

/** The values that the message would replace; undefined: it replaces none. */
function placesOf({ channel, data, refused }: Message): readonly string[] | undefined {
  if (refused !== undefined) return undefined;
  if (channel.kind === 'telemetry' && typeof data === 'object' && data !== null) {
    return Object.keys(data).map((part) => `telemetry ${part}`);
  }
  const isValue =
    ['asset', 'commands', 'roster'].includes(channel.kind) ||
    (channel.kind === 'event' && channel.feed === 'asset_status');
  return isValue ? [channelOf(channel)] : undefined;
}
