/** What the outbox hands to the uplink: one MQTT message, and what it stands for. */
import { packBatch, type BatchItem } from '../contract/batch-pack.ts';
import { writeEnvelope, type TimeQuality } from '../contract/envelope.ts';
import { laneRules, type Lane } from '../contract/lanes.ts';
import { channels } from '../contract/topics.ts';
import type { TakenBatch, TakenRow } from './protocol.ts';
import { positionOf, type Row } from './row.ts';

/** A message of this run that is in the main thread's hands, on its way to the broker. */
export interface Live {
  readonly row: Row;
  /** Monotonic time of acceptance. */
  readonly since_ms: number;
  /** `due`: the next commit writes it. `writing`: in a commit that has not been answered. */
  disk: 'no' | 'due' | 'writing' | 'yes';
  /** `held`: queued as soon as it is on disk. `nowhere`: the store hands it out again, once it is there. */
  place: 'nowhere' | 'held' | 'queued' | 'sent';
  /** The broker has it. */
  acked: boolean;
}

/** What a message on the wire stands for. */
type Content =
  | { readonly kind: 'live'; readonly live: Live }
  | { readonly kind: 'packet'; readonly lives: readonly Live[] }
  | { readonly kind: 'row'; readonly row: TakenRow }
  | { readonly kind: 'batch'; readonly batch: TakenBatch }
  /** It was delivered once, as far as the broker's word goes. */
  | { readonly kind: 'echo' };

export interface Parcel {
  readonly lane: Lane;
  readonly channel: string;
  readonly payload: string | Uint8Array;
  readonly retain: boolean;
  /** Messages inside. */
  readonly rows: number;
  /** From the buffer: it goes at the backlog's pace, not at that of live messages. */
  readonly backlog: boolean;
  readonly content: Content;
}

/** UTC of `mono_ms`, once the clock of this boot is known. */
export type ClockOffset = number | undefined;

export function liveParcel(live: Live, offset_ms: ClockOffset): Parcel {
  const { row } = live;
  return {
    ...single(row, qualityNow(row, offset_ms), offset_ms),
    backlog: false,
    content: { kind: 'live', live },
  };
}

export function rowParcel(row: TakenRow): Parcel {
  return { ...single(row, row.time_quality, undefined), backlog: true, content: { kind: 'row', row } };
}

export function batchParcel(batch: TakenBatch): Parcel {
  return {
    ...carrier,
    lane: batch.lane,
    payload: batch.payload,
    rows: batch.rows,
    backlog: true,
    content: { kind: 'batch', batch },
  };
}

/** Several live messages in one, for links that are paid by the byte. */
export function packetParcel(lives: readonly Live[], offset_ms: ClockOffset): Parcel {
  const items = lives.map(({ row }) => batchItem(row, offset_ms));
  const payload = packBatch(items, { historical: false });
  return {
    ...carrier,
    lane: 'feed',
    payload,
    rows: lives.length,
    backlog: false,
    content: { kind: 'packet', lives },
  };
}

const carrier = { channel: channels.batch, retain: false } as const;

function batchItem(row: Row, offset_ms: ClockOffset): BatchItem {
  const time_quality = qualityNow(row, offset_ms);
  const item = {
    channel: row.channel,
    ...positionOf(row.id),
    time_ms: timeOf(row, time_quality, offset_ms),
    data: row.body,
  };
  return time_quality ? { ...item, time_quality } : item;
}

function single(row: Row, time_quality: TimeQuality | undefined, offset_ms: ClockOffset) {
  const { retain } = laneRules[row.lane];
  const time_ms = timeOf(row, time_quality, offset_ms);
  // An empty payload takes a retained message away (MQTT 5 section 3.3.1.3), so `null` is never sent as text there.
  const clears = retain && row.body === 'null';
  const payload = clears ? '' : writeEnvelope({ ...positionOf(row.id), time_ms, time_quality }, row.body);
  return { lane: row.lane, channel: row.channel, payload, retain, rows: 1 };
}

function qualityNow(row: Row, offset_ms: ClockOffset): TimeQuality | undefined {
  if (row.mono_ms === null) return undefined;
  return offset_ms === undefined ? 'unsynced' : 'corrected';
}

function timeOf(row: Row, quality: TimeQuality | undefined, offset_ms: ClockOffset): number {
  const known = quality === 'corrected' && row.mono_ms !== null && offset_ms !== undefined;
  return known ? row.mono_ms + offset_ms : row.time_ms;
}
