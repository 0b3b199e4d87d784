/** Turns what came from the broker into messages that the store can take, or into the reason why it cannot. */
import { z } from 'zod';
import { batchItems, openBatch } from '../../contract/batch.ts';
import type { BatchItem } from '../../contract/batch-pack.ts';
import { timeQuality } from '../../contract/envelope.ts';
import { json, type Json } from '../../contract/json.ts';
import { type Channel, parseUp, readChannel } from '../../contract/topics.ts';
import { messageOf } from '../../errors.ts';

/** Bytes of one payload; what is larger is refused unread. A packed batch is smaller. */
export const payload_bytes_max = 4 * 1024 * 1024;

/** One message of a kit. `data` null on `asset` and `commands`: the asset is gone. */
export interface Message {
  readonly channel: Channel;
  readonly epoch: number;
  readonly seq: number;
  readonly time_ms: number;
  /** The time is not to be trusted: order by epoch and seq. */
  readonly unsynced: boolean;
  readonly data: Json;
}

export interface Reception {
  readonly kit_id: string;
  readonly messages: readonly Message[];
  /** Ids of assets that were cleared with an empty payload, which has no envelope. */
  readonly cleared: readonly string[];
  /** The broker had kept it: it tells nothing of when the kit spoke. */
  readonly retained: boolean;
  /** From the kit's buffer: no news. */
  readonly historical: boolean;
  /** What could not be read, a sentence each. */
  readonly faults: readonly string[];
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

/** Undefined for a topic that is no kit's. Never throws. */
export function readMessage(topic: string, payload: Uint8Array, retained = false): Reception | undefined {
  const place = parseUp(topic);
  const kit_id = uuid.safeParse(place?.kit_id).data?.toLowerCase();
  if (!place || !kit_id) return undefined;
  const nothing: Reception = { kit_id, messages: [], cleared: [], retained, historical: false, faults: [] };
  const channel = readChannel(place.channel);
  // A later minor version may have channels that this one does not know.
  if (!channel) return nothing;
  try {
    checkIds(channel);
    return { ...nothing, ...readPayload(channel, payload) };
  } catch (error) {
    return { ...nothing, faults: [`${place.channel}: ${reasonOf(error)}`] };
  }
}

function readPayload(channel: Channel, payload: Uint8Array): Partial<Reception> {
  if (payload.length > payload_bytes_max) {
    throw new RangeError(`${payload.length} bytes; at most ${payload_bytes_max}`);
  }
  if (channel.kind === 'batch') return readBatch(payload);
  if (payload.length === 0) {
    if (channel.kind === 'asset') return { cleared: [channel.asset_id] };
    if (channel.kind === 'commands') return {};
    throw new RangeError('empty');
  }
  const { data, time, time_quality, epoch, seq } = envelope.parse(
    JSON.parse(Buffer.from(payload).toString('utf8')),
  );
  const unsynced = time_quality === 'unsynced';
  return { messages: [{ channel, epoch, seq, time_ms: Date.parse(time), unsynced, data: data ?? null }] };
}

function readBatch(payload: Uint8Array): Pick<Reception, 'messages' | 'historical'> {
  const opened = openBatch(payload);
  return { historical: opened.historical, messages: batchItems(opened).flatMap(messageOfItem) };
}

function messageOfItem(item: BatchItem): Message[] {
  const channel = readChannel(item.channel);
  if (!channel || channel.kind === 'batch' || channel.kind === 'state') return [];
  checkIds(channel);
  const { epoch, seq, time_ms } = item;
  const data = json.parse(JSON.parse(item.data));
  return [{ channel, epoch, seq, time_ms, unsynced: item.time_quality === 'unsynced', data }];
}

/** Ids become keys of tables and parts of topics. Throws a `RangeError`. */
function checkIds(channel: Channel): void {
  const id = 'asset_id' in channel ? channel.asset_id : 'task_id' in channel ? channel.task_id : undefined;
  if (id !== undefined && !uuid.safeParse(id).success) throw new RangeError(`"${id}" is no UUID`);
}

function reasonOf(error: unknown): string {
  return error instanceof z.ZodError ? z.prettifyError(error) : messageOf(error);
}
