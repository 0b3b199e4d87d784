/** What the history keeps of a message, and how messages are divided: into classes, which are kept for different times, and days. */
import { channelKind, channels, readChannel } from '../../contract/topics.ts';
import { day_ms } from '../../platform/time.ts';

/** Messages of one class are stored together: most questions are about one of them. */
export const history_classes = ['event', 'position', 'feed', 'kit'] as const;
export type HistoryClass = (typeof history_classes)[number];

/** One message of a kit as the history stores it. */
export interface HistoryMessage {
  /** The topic below `k1/{kit_id}/up/`. */
  readonly channel: string;
  /** 0: not numbered by the kit, such as a pushed fix; `seq` is its time then. */
  readonly epoch: number;
  readonly seq: number;
  /** Time of observation by the clock of the kit, milliseconds since 1970. */
  readonly time_ms: number;
  /** The clock of the kit was not set. */
  readonly unsynced: boolean;
  /** JSON text. */
  readonly data: string;
  /** Place in the order of arrival at this service, where that matters; 0: stored by a version without that order. */
  readonly arrived_ms?: number | undefined;
}

/** Events, tasks and presence; positions; other feeds; everything about the kit as a whole. */
export function classOf(channel: string): HistoryClass {
  const kind = channelKind(channel);
  if (kind === 'event' || kind === 'task' || kind === 'state') return 'event';
  if (kind === 'feed') return channel.endsWith('/gps') ? 'position' : 'feed';
  return 'kit';
}

/** Days since 1970, UTC. */
export function dayOf(time_ms: number): number {
  return Math.floor(time_ms / day_ms);
}

/** Equal for two copies of one message. Presence counts connections, so that its numbers are no numbers of messages. */
export function identityOf({
  channel,
  epoch,
  seq,
}: Pick<HistoryMessage, 'channel' | 'epoch' | 'seq'>): string {
  return epoch === 0 || channel === channels.state ? `${epoch}/${seq}/${channel}` : `${epoch}/${seq}`;
}

/** The order of a history: time of observation, then the order in which the kit sent. */
export function byTime(a: Ordered, b: Ordered): number {
  const difference = a.time_ms - b.time_ms || a.epoch - b.epoch || a.seq - b.seq;
  if (difference !== 0 || a.channel === b.channel) return difference;
  return a.channel < b.channel ? -1 : 1;
}

/** The order of arrival: what one commit stored is in the order of the history. */
export function byArrival(a: Arrived, b: Arrived): number {
  return (a.arrived_ms ?? 0) - (b.arrived_ms ?? 0) || byTime(a, b);
}

type Arrived = Ordered & Pick<HistoryMessage, 'arrived_ms'>;
type Ordered = Pick<HistoryMessage, 'time_ms' | 'epoch' | 'seq' | 'channel'>;

/** Asset and feed of the channel of a feed or an event. */
export function feedOf(channel: string): { readonly asset_id: string; readonly feed: string } | undefined {
  const read = readChannel(channel);
  if (read?.kind !== 'feed' && read?.kind !== 'event') return undefined;
  return { asset_id: read.asset_id, feed: read.feed };
}

/** Messages that belong into one segment. */
export interface Part {
  readonly class: HistoryClass;
  readonly day: number;
  readonly epoch: number;
  readonly misdated: boolean;
  readonly messages: HistoryMessage[];
}
