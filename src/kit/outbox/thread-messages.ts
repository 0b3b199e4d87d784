/** What crosses between `StoreClient` and the thread: first the `StoreOptions`, then requests. */
import type { TimeQuality } from '../../contract/envelope.ts';
import type { Lane } from '../../contract/lanes.ts';
import type { StorageFault } from '../../platform/errors.ts';
import type {
  RowRef,
  SalvageProgress,
  StoreRequests,
  Taken,
  TakenRow,
  TakeRequest,
  Work,
} from './protocol.ts';
import type { RowId } from './row.ts';

/** `commit` and `take`, which carry many rows, have a packed form. */
export type Ask =
  | { readonly method: 'commit'; readonly work: PackedWork }
  | { readonly method: 'take'; readonly request: TakeRequest }
  | {
      readonly method: Exclude<keyof StoreRequests, 'commit' | 'take'>;
      readonly args: readonly unknown[];
    };

/** Ids from 1; replies come in the same order. */
export type Request = Ask & { readonly id: number };

/** An error class does not survive the crossing, so it goes as data. */
export interface Failure {
  readonly unavailable: boolean;
  /** It may have been carried out. */
  readonly unsure: boolean;
  readonly fault: StorageFault | undefined;
  readonly message: string;
}

/** The thread's side of an answer. Number 0 is sent without a request and carries the result of opening. */
export type Reply =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly failure: Failure };

/** Sent without a request. */
export interface Notice {
  readonly salvage: SalvageProgress;
}

/** The same as it arrives: only the caller knows the type of `value`. */
export type Answer =
  | { readonly id: number; readonly value: never }
  | { readonly id: number; readonly failure: Failure };

/** Refs as they cross: a list of numbers for each lane. An object for each ref costs ten times as much on both sides. */
export type PackedRefs = readonly (readonly [lane: Lane, ids: readonly RowId[]])[];

/** `Work` as it crosses. */
export interface PackedWork extends Omit<Work, 'delivered' | 'unconfirmed'> {
  readonly delivered: PackedRefs;
  readonly unconfirmed: PackedRefs;
}

export function packWork(work: Work): PackedWork {
  return { ...work, delivered: packRefs(work.delivered), unconfirmed: packRefs(work.unconfirmed) };
}

export function unpackWork(work: PackedWork): Work {
  return { ...work, delivered: unpackRefs(work.delivered), unconfirmed: unpackRefs(work.unconfirmed) };
}

function packRefs(refs: readonly RowRef[]): PackedRefs {
  const ids = new Map<Lane, RowId[]>();
  for (const { lane, id } of refs) {
    const known = ids.get(lane);
    if (known) known.push(id);
    else ids.set(lane, [id]);
  }
  return [...ids];
}

function unpackRefs(packed: PackedRefs): readonly RowRef[] {
  return packed.flatMap(([lane, ids]) => ids.map((id) => ({ lane, id })));
}

type PackedRow = readonly [
  id: RowId,
  channel: number,
  time_ms: number,
  mono_ms: number | null,
  time_quality: TimeQuality | undefined,
  body: string,
];

/** `Taken` as it crosses: the rows of a request are of one lane, and a channel is written once. */
export interface PackedTaken extends Omit<Taken, 'rows'> {
  readonly channels: readonly string[];
  readonly rows: readonly PackedRow[];
}

export function packTaken({ rows, ...taken }: Taken): PackedTaken {
  const channels = new Map<string, number>();
  const packed = rows.map(({ id, channel, time_ms, mono_ms, time_quality, body }): PackedRow => {
    const known = channels.get(channel) ?? channels.size;
    channels.set(channel, known);
    return [id, known, time_ms, mono_ms, time_quality, body];
  });
  return { ...taken, channels: [...channels.keys()], rows: packed };
}

export function unpackTaken(lane: Lane, { channels, rows, ...taken }: PackedTaken): Taken {
  const unpacked = rows.map(([id, channel, time_ms, mono_ms, time_quality, body]): TakenRow => ({
    id,
    lane,
    channel: channels[channel] ?? '',
    time_ms,
    mono_ms,
    time_quality,
    body,
  }));
  return { ...taken, rows: unpacked };
}
