/** An MQTT message from the outbox to the uplink, and the rows that it contains. */
import { packBatch } from '../../../contract/batch/pack.ts';
import { type BatchItem } from '../../../contract/batch/writer.ts';
import { type TimeQuality, writeEnvelope } from '../../../contract/envelope.ts';
import { type Lane, laneRules } from '../../../contract/lanes.ts';
import { channels } from '../../../contract/topics.ts';
import type { TakenBatch, TakenRow } from '../protocol.ts';
import type { LiveState } from './live-state.ts';
import { positionOf, type Row, type RowId, soundTime } from '../row.ts';

/** A message of this run that the main thread holds, on its way to the broker. */
export interface Live {
  readonly row: Row;
  /** Monotonic time of acceptance. */
  readonly since_ms: number;
  /** Set by `Moves` only. */
  state: LiveState;
  /** Position among the rows that the committer was given; 0 until then. */
  order: number;
  /** Never sent from memory before it is on disk, whatever its lane allows. */
  readonly from_disk_only: boolean;
  /** Sent when nothing else waits. */
  readonly is_behind: boolean;
}

/** What a message on the wire stands for. */
type Content =
  | { readonly kind: 'live'; readonly live: Live }
  | { readonly kind: 'packet'; readonly lives: readonly Live[] }
  | { readonly kind: 'row'; readonly row: TakenRow }
  | { readonly kind: 'batch'; readonly batch: TakenBatch }
  /** The broker acknowledged it once. */
  | { readonly kind: 'replay'; readonly id: RowId; readonly ids?: readonly RowId[] | undefined };

export interface OutgoingMessage {
  readonly lane: Lane;
  readonly channel: string;
  readonly payload: string | Uint8Array;
  /** The broker keeps it for later subscribers. */
  readonly retain: boolean;
  /**
   * Removes the retained message of its channel: this payload, an envelope with `data: null`, is published without the retain
   * flag, directly followed by the empty retained payload. Acknowledged when both are.
   */
  readonly removal: boolean;
  /** Messages inside. */
  readonly rows: number;
  /** From the buffer, or behind all others: it goes at the backlog's pace, not at that of live messages. */
  readonly backlog: boolean;
  readonly content: Content;
}

/** The number of the message, or of the first one inside. */
export function outgoingId({ content }: OutgoingMessage): RowId {
  switch (content.kind) {
    case 'live':
      return content.live.row.id;
    case 'packet':
      return content.lives[0]?.row.id ?? 0;
    case 'row':
      return content.row.id;
    case 'batch':
      return content.batch.lo;
    case 'replay':
      return content.id;
    default:
      return content satisfies never;
  }
}

export function isRetained({ row: { lane } }: Live): boolean {
  return laneRules[lane].retain;
}

/** Messages of this run inside. */
export function livesOf({ content }: OutgoingMessage): readonly Live[] {
  if (content.kind === 'live') return [content.live];
  return content.kind === 'packet' ? content.lives : [];
}

/** UTC of `mono_ms`, once the clock of this boot is known. */
export type ClockOffset = number | undefined;

export function outgoingOfLive(live: Live, offset_ms: ClockOffset): OutgoingMessage {
  const { row } = live;
  return single(row, qualityNow(row, offset_ms), offset_ms, { kind: 'live', live });
}

export function outgoingOfRow(row: TakenRow): OutgoingMessage {
  return single(row, row.time_quality, undefined, { kind: 'row', row });
}

export function outgoingOfBatch(batch: TakenBatch): OutgoingMessage {
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
export function outgoingOfPacket(lives: readonly Live[], offset_ms: ClockOffset): OutgoingMessage {
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

const carrier = { channel: channels.batch, retain: false, removal: false } as const;

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

/** Every message passes here: it makes one object, and no copies of others. */
function single(
  row: Row,
  time_quality: TimeQuality | undefined,
  offset_ms: ClockOffset,
  content: Extract<Content, { kind: 'live' | 'row' }>,
): OutgoingMessage {
  const { lane, channel, body } = row;
  const { retain } = laneRules[lane];
  const { epoch, seq } = positionOf(row.id);
  const time_ms = timeOf(row, time_quality, offset_ms);
  // The empty payload that clears a retained message (MQTT 5 section 3.3.1.3) has no stamp: the envelope orders the removal.
  const removal = retain && body === 'null';
  return {
    lane,
    channel,
    payload: writeEnvelope({ epoch, seq, time_ms, time_quality }, body),
    retain: retain && !removal,
    removal,
    rows: 1,
    backlog: content.kind === 'row' || content.live.is_behind,
    content,
  };
}

function qualityNow(row: Row, offset_ms: ClockOffset): TimeQuality | undefined {
  if (row.mono_ms === null) return undefined;
  return offset_ms === undefined ? 'unsynced' : 'corrected';
}

function timeOf(row: Row, quality: TimeQuality | undefined, offset_ms: ClockOffset): number {
  const known = quality === 'corrected' && row.mono_ms !== null && offset_ms !== undefined;
  return soundTime(known ? row.mono_ms + offset_ms : row.time_ms);
}
