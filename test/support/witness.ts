/** Writes down what arrived: which numbers, how often, and how long they were on the way. Pure; fed by the subscriber. */
import { unpackBatch } from '../../src/contract/batch/batch.ts';
import { channels } from '../../src/contract/topics.ts';

/** Sequence numbers from `lo` to `hi`, both included. */
export type Range = readonly [lo: number, hi: number];

export interface Latency {
  readonly count: number;
  readonly p50_ms: number;
  readonly p99_ms: number;
  readonly max_ms: number;
}

export interface Sighting {
  /** Numbered messages, those in batches included, each time they came. */
  readonly messages: number;
  readonly unique: number;
  readonly duplicates: number;
  /** MQTT messages that carried them. */
  readonly packets: number;
  readonly payload_bytes: number;
  /** Messages without a number of the sequence: states, clearings and what is not of the contract. */
  readonly unnumbered: number;
  /** First and last arrival, microseconds of the monotonic clock. */
  readonly first_us: number;
  readonly last_us: number;
  /** Of the messages that carry `sent_us`. */
  readonly latency: Latency | undefined;
  readonly epochs: Readonly<Record<number, EpochSighting>>;
}

export interface EpochSighting {
  readonly unique: number;
  readonly first_us: number;
  readonly last_us: number;
}

const epoch_key = Buffer.from('"epoch":');
const seq_key = Buffer.from('"seq":');
const sent_key = Buffer.from('"sent_us":');
const batch_topic_end = `/up/${channels.batch}`;
/** The state message counts connections instead of messages. */
const state_topic_end = `/up/${channels.state}`;
/** Numbers of one block: an epoch begins anywhere. */
const block_size = 4_096;

/** Microseconds of the machine's monotonic clock, the same in every process. */
export function monotonic_us(): number {
  return Number(process.hrtime.bigint() / 1000n);
}

interface Seen {
  /** How often each number came, by block; 255 stands for more. */
  readonly blocks: Map<number, Uint8Array>;
  unique: number;
  readonly first_us: number;
  last_us: number;
}

export class Witness {
  readonly #seen = new Map<number, Seen>();
  /** Batches are opened when somebody asks, so that opening them does not disturb a measurement. */
  #unopened: { readonly payload: Buffer; readonly at_us: number }[] = [];
  #latencies_us: number[] = [];
  #messages = 0;
  #packets = 0;
  #payload_bytes = 0;
  #unnumbered = 0;
  #first_us = 0;
  #last_us = 0;
  #touched = new Set<number>();

  /** Takes one MQTT message. */
  take(topic: string, payload: Buffer, at_us: number): void {
    this.#packets += 1;
    this.#payload_bytes += payload.length;
    this.#first_us ||= at_us;
    this.#last_us = at_us;
    if (topic.endsWith(batch_topic_end)) {
      // A copy, since the payload is a part of a socket's buffer.
      this.#unopened.push({ payload: Buffer.from(payload), at_us });
      return;
    }
    const epoch = numberAfter(payload, epoch_key);
    const seq = numberAfter(payload, seq_key);
    if (epoch === undefined || seq === undefined || topic.endsWith(state_topic_end)) {
      this.#unnumbered += 1;
      return;
    }
    this.#count(epoch, seq, at_us);
    this.#time(numberAfter(payload, sent_key), at_us);
  }

  report(): Sighting {
    this.#open();
    const unique = [...this.#seen.values()].reduce((sum, seen) => sum + seen.unique, 0);
    return {
      messages: this.#messages,
      unique,
      duplicates: this.#messages - unique,
      packets: this.#packets,
      payload_bytes: this.#payload_bytes,
      unnumbered: this.#unnumbered,
      first_us: this.#first_us,
      last_us: this.#last_us,
      latency: latencyOf(this.#latencies_us),
      epochs: Object.fromEntries(
        [...this.#seen].map(([epoch, { unique, first_us, last_us }]) => [
          epoch,
          { unique, first_us, last_us },
        ]),
      ),
    };
  }

  /** What came of every epoch, as ranges. */
  ranges(): Record<number, Range[]> {
    this.#open();
    return Object.fromEntries([...this.#seen].map(([epoch, { blocks }]) => [epoch, rangesOf(blocks)]));
  }

  /** The same for the epochs of which something came since the last call. */
  news(): Record<number, Range[]> {
    this.#open();
    const touched = [...this.#touched];
    this.#touched.clear();
    return Object.fromEntries(
      touched.map((epoch) => [epoch, rangesOf(this.#seen.get(epoch)?.blocks ?? new Map())]),
    );
  }

  #open(): void {
    const unopened = this.#unopened;
    this.#unopened = [];
    for (const { payload, at_us } of unopened) {
      for (const { epoch, seq, data } of unpackBatch(payload)) {
        this.#count(epoch, seq, at_us);
        this.#time(numberAfter(Buffer.from(data), sent_key), at_us);
      }
    }
  }

  #count(epoch: number, seq: number, at_us: number): void {
    const seen = this.#seen.get(epoch) ?? {
      blocks: new Map<number, Uint8Array>(),
      unique: 0,
      first_us: at_us,
      last_us: at_us,
    };
    this.#seen.set(epoch, seen);
    const block = Math.floor(seq / block_size);
    const counts = seen.blocks.get(block) ?? new Uint8Array(block_size);
    seen.blocks.set(block, counts);
    const at = seq % block_size;
    const before = counts[at] ?? 0;
    if (before === 0) seen.unique += 1;
    if (before < 255) counts[at] = before + 1;
    seen.last_us = at_us;
    this.#messages += 1;
    this.#touched.add(epoch);
  }

  #time(sent_us: number | undefined, at_us: number): void {
    if (sent_us !== undefined && sent_us > 0) this.#latencies_us.push(at_us - sent_us);
  }
}

/** The whole number after a key, without parsing the JSON around it. */
function numberAfter(bytes: Buffer, key: Buffer): number | undefined {
  const found = bytes.indexOf(key);
  if (found < 0) return undefined;
  let value = 0;
  let at = found + key.length;
  for (; at < bytes.length; at++) {
    const digit = (bytes[at] ?? 0) - 48;
    if (digit < 0 || digit > 9) break;
    value = value * 10 + digit;
  }
  return at > found + key.length ? value : undefined;
}

function rangesOf(blocks: ReadonlyMap<number, Uint8Array>): Range[] {
  const ranges: [number, number][] = [];
  for (const [block, counts] of [...blocks].sort(([a], [b]) => a - b)) {
    for (const [at, count] of counts.entries()) {
      const seq = block * block_size + at;
      const last = ranges.at(-1);
      if (count === 0) continue;
      if (last && last[1] === seq - 1) last[1] = seq;
      else ranges.push([seq, seq]);
    }
  }
  return ranges;
}

/** The number that an epoch began with, of which some have come: that of their first block. */
export function firstNumber(seqs: Iterable<number>): number {
  const lowest = [...seqs].reduce((least, seq) => Math.min(least, seq), Number.POSITIVE_INFINITY);
  return Math.floor((lowest - 1) / block_size) * block_size + 1;
}

function latencyOf(latencies_us: readonly number[]): Latency | undefined {
  if (latencies_us.length === 0) return undefined;
  const sorted = Float64Array.from(latencies_us).sort();
  const quantile_ms = (share: number): number =>
    (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0) / 1000;
  return {
    count: sorted.length,
    p50_ms: quantile_ms(0.5),
    p99_ms: quantile_ms(0.99),
    max_ms: quantile_ms(1),
  };
}
