/** Parses messages from the broker into receptions for the store, with the faults of what cannot be stored. */
import { z } from 'zod';
import { batchItemSteps, openBatchSteps } from '../contract/batch/batch.ts';
import type { BatchItem } from '../contract/batch/writer.ts';
import { countValues, decodedText, message_limits } from '../contract/bounded-json.ts';
import { timeQuality } from '../contract/envelope.ts';
import { firstFault } from '../contract/first-fault.ts';
import { json, type Json } from '../contract/json.ts';
import { finish, Pace, type Steps } from '../contract/batch/steps.ts';
import { type Channel, channels, parseUp, readChannel, trial_channel } from '../contract/topics.ts';
import { messageOf } from '../platform/errors.ts';
import { texts } from './texts.ts';
import { cleanTexts, cleanTextsBut } from '../platform/foreign-text.ts';

/** Why a message was refused. */
export interface Refusal {
  /** Topic below `k1/{kit_id}/up/`. */
  readonly channel: string;
  /** What is wrong, the value, and what would be right. */
  readonly reason: string;
  /** When it was observed; left out: not known, since it could not be read. */
  readonly time_ms?: number | undefined;
}

/** Bytes of a packed batch; a larger one is rejected unread. A kit packs 64 KiB of messages, or a single message of 256 KiB. */
export const payload_bytes_max = 1024 * 1024;
/** Values of all messages of a batch: columns of one value for all rows let a few bytes stand for many of them. */
const batch_values_max = 300_000;

/** What a value takes in memory beside its text: empty objects and arrays take twenty times theirs. */
const value_bytes = 32;

/** The work of a message: counted, parsed and cleaned, and what it costs whatever its length. */
const [message_work, message_chars] = [4, 250];

/** Messages of one batch that cannot be read before the rest of it is left unread. */
const batch_faults_max = 100;

/**
 * Epochs of one batch, the oldest of which are read: each costs the database what a message costs. A kit begins one with each start, and
 * the service remembers the numbers of 64.
 */
const batch_epochs_max = 256;

/** One message of a kit. `data` null on `asset` and `commands`: the asset is gone. */
export interface Message {
  readonly channel: Channel;
  readonly epoch: number;
  readonly seq: number;
  readonly time_ms: number;
  /** The clock of the kit was not set: the time is unreliable. */
  readonly unsynced: boolean;
  readonly data: Json;
  /** Why its content cannot be stored; only its number is. */
  readonly refused?: string;
  /** This service has made it, and has its content; only its number is stored. */
  readonly isOwn?: boolean;
}

/** What a kit's messages are ordered by; their times are not. */
export type Order = Pick<Message, 'epoch' | 'seq'>;

export function isNewer(message: Order, than: Order): boolean {
  return (message.epoch - than.epoch || message.seq - than.seq) > 0;
}

export interface Reception {
  readonly kit_id: string;
  readonly messages: readonly Message[];
  /** Ids of assets that were cleared with an empty payload, which has no envelope. */
  readonly cleared: readonly string[];
  /** A retained message: its arrival does not show when the kit sent it. */
  readonly retained: boolean;
  /** From the buffer of the kit: not current. */
  readonly historical: boolean;
  /** From an export: nothing happens because of it beside storing it. */
  readonly imported?: boolean;
  /** Why messages could not be read. */
  readonly faults: readonly Refusal[];
  /** A channel that this version does not know. */
  readonly unknown?: string;
  /** Bytes of memory that its messages take, roughly; a small message when absent. */
  readonly weight?: number;
  /** The batch as it came, when all of it could be read and nothing had to be cleaned. */
  readonly packed?: Uint8Array | undefined;
}

const uuid = z.uuid();
/** As the contract's envelope, and open to what a later minor version adds. */
const envelope = z.looseObject({
  time: z.iso.datetime(),
  time_quality: timeQuality.optional(),
  epoch: z.int().positive(),
  seq: z.int().nonnegative(),
  data: json,
});

/** Parses a message; undefined for a topic of no kit. Never throws. */
export function readMessage(topic: string, payload: Uint8Array, retained = false): Reception | undefined {
  return finish(readMessageSteps(topic, payload, retained));
}

/** As `readMessage`, in steps: a batch can cost a multiple of what the event loop may miss. */
export function* readMessageSteps(
  topic: string,
  payload: Uint8Array,
  retained = false,
): Steps<Reception | undefined> {
  const place = parseUp(topic);
  const kit_id = uuid.safeParse(place?.kit_id).data?.toLowerCase();
  if (!place || !kit_id) return undefined;
  const nothing: Reception = { kit_id, messages: [], cleared: [], retained, historical: false, faults: [] };
  if (place.channel === trial_channel) return nothing;
  const channel = readChannel(place.channel);
  // A later minor version may have channels that this one does not know.
  if (!channel) return { ...nothing, unknown: place.channel };
  try {
    checkIds(channel);
    return { ...nothing, ...(yield* readPayload(channel, payload)) };
  } catch (error) {
    return { ...nothing, faults: [{ channel: place.channel, reason: reasonOf(error) }] };
  }
}

/** A message that is not read, as refused; undefined for a topic of no kit. */
export function refusedUnread(topic: string, reason: string, retained = false): Reception | undefined {
  const place = parseUp(topic);
  const kit_id = uuid.safeParse(place?.kit_id).data?.toLowerCase();
  if (!place || !kit_id) return undefined;
  const faults = [{ channel: place.channel, reason }];
  return { kit_id, messages: [], cleared: [], retained, historical: false, faults };
}

function* readPayload(channel: Channel, payload: Uint8Array): Steps<Partial<Reception>> {
  if (channel.kind === 'batch') return yield* readBatch(payload);
  if (payload.length === 0) {
    if (channel.kind === 'asset') return { cleared: [channel.asset_id] };
    if (channel.kind === 'commands' || channel.kind === 'partner') return {};
    throw new RangeError('the payload is empty');
  }
  const text = decodedText(payload, message_limits);
  const values = countValues(text, message_limits);
  const value: unknown = JSON.parse(text);
  const read = envelope.safeParse(value);
  if (!read.success) throw new RangeError(firstFault(read.error, { value, name: '' }));
  const { data, time, time_quality, epoch, seq } = read.data;
  const unsynced = time_quality === 'unsynced';
  const time_ms = Date.parse(time);
  const message = { channel, epoch, seq, time_ms, unsynced, data: cleaned(channel, data ?? null) };
  return { messages: [message], weight: payload.length + value_bytes * values };
}

/**
 * The data without text that deceives a reader: a kit cleans what its devices report, but another kit may be hostile. The
 * metadata of a partner asset belongs to its client and stays as it is.
 */
function cleaned(channel: Channel, data: Json): Json {
  return channel.kind === 'partner' ? cleanTextsBut('metadata', data) : cleanTexts(data);
}

/** An unreadable message does not affect the others of its batch. */
function* readBatch(payload: Uint8Array): Steps<Partial<Reception>> {
  if (payload.length > payload_bytes_max) {
    throw new RangeError(`${payload.length} bytes; at most ${payload_bytes_max}`);
  }
  const pace = new Pace();
  const opened = yield* openBatchSteps(payload, pace);
  const items = yield* batchItemSteps(opened, pace);
  const messages: Message[] = [];
  const faults: Refusal[] = [];
  const refuse = (reason: string): void => void faults.push({ channel: channels.batch, reason });
  const budget = { values_left: batch_values_max, cleaned: 0 };
  const epochs = new Set<number>();
  for (const [index, item] of items.entries()) {
    const rest = items.length - index;
    epochs.add(item.epoch);
    if (epochs.size > batch_epochs_max) {
      refuse(`more than ${batch_epochs_max} epochs; ${rest} messages not read`);
      break;
    }
    const reason = reasonToLeave(budget, faults);
    if (reason !== undefined) {
      refuse(`${reason}; ${rest} messages not read`);
      break;
    }
    try {
      const message = messageOfItem(item, budget);
      if (message) messages.push(message);
    } catch (error) {
      faults.push({ channel: item.channel, reason: reasonOf(error), time_ms: item.time_ms });
    }
    if (pace.isDue(item.data.length * message_work + message_chars)) yield;
  }
  const chars = items.reduce((sum, { data }) => sum + data.length, 0);
  const weight = chars + value_bytes * (batch_values_max - budget.values_left);
  const isWhole = messages.length === items.length && budget.cleaned === 0;
  return { historical: opened.historical, messages, faults, weight, ...(isWhole && { packed: payload }) };
}

/** Why the rest of a batch is not read. */
function reasonToLeave(
  { values_left }: { readonly values_left: number },
  faults: readonly Refusal[],
): string | undefined {
  if (values_left < 0) return `more than ${batch_values_max} values`;
  return faults.length >= batch_faults_max ? 'too many faults' : undefined;
}

function messageOfItem(
  item: BatchItem,
  budget: { values_left: number; cleaned: number },
): Message | undefined {
  const channel = readChannel(item.channel);
  if (!channel) return undefined;
  if (channel.kind === 'batch' || channel.kind === 'state') throw new RangeError(texts.no_message_of_batch);
  checkIds(channel);
  const { epoch, seq, time_ms } = item;
  budget.values_left -= countValues(item.data, message_limits);
  const raw = json.parse(JSON.parse(decodedText(item.data, message_limits)));
  const data = cleaned(channel, raw);
  if (data !== raw) budget.cleaned += 1;
  return { channel, epoch, seq, time_ms, unsynced: item.time_quality === 'unsynced', data };
}

/** Ids become keys of tables and parts of topics. Throws a `RangeError`. */
function checkIds(channel: Channel): void {
  for (const [name, id] of Object.entries(channel))
    if (name.endsWith('_id') && !uuid.safeParse(id).success) throw new RangeError(`"${id}" is not a UUID`);
}

function reasonOf(error: unknown): string {
  return error instanceof z.ZodError ? firstFault(error) : messageOf(error);
}

/** Events about the state of an asset or a link, which other tables hold. */
export function isAboutState(feed: string): boolean {
  return feed === 'asset_status' || feed === 'link_status';
}
