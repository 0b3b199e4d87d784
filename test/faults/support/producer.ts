/** Starts the producer that is made to be killed, and reads what it had accepted. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { AckRule } from '../../../src/kit/outbox/api.ts';
import { within } from '../../../src/platform/time.ts';
import { eventually } from '../../support/eventually.ts';
import { dyingWithUs } from '../../support/peers.ts';
import type { Range } from '../../support/witness.ts';

export interface ProducerSpec {
  readonly file: string;
  readonly url: string;
  /** Where it notes what it has accepted. */
  readonly record: string;
  readonly ack: AckRule;
  /** False: it only drains what an earlier one left, and ends when nothing is left. */
  readonly produce: boolean;
  /** Between two bursts; 0: full speed. */
  readonly pause_ms: number;
  /** No more than so many are accepted ahead of what is delivered for good. */
  readonly ahead_max: number;
  /** Every so many-th burst is of sync messages, the others are telemetry. */
  readonly sync_every: number;
}

export interface Producer {
  /** Resolves once it has opened its file and accepts messages. */
  opened(): Promise<void>;
  readonly exited: Promise<unknown>;
  kill(signal: NodeJS.Signals): Promise<void>;
}

const exit_ms = 30_000;
/** A process starts late where others keep the processors busy. */
const opens_within_ms = 120_000;
/** `open` is the first line of a producer; the one that was killed may have left a part of a line before it. */
const record_head_bytes = 256;

export function startProducer(spec: ProducerSpec): Producer {
  return prepareProducer(spec).start();
}

/** A process that has loaded everything and begins when it is told, so that a campaign need not wait for that at each kill. */
export interface PreparedProducer {
  start(): Producer;
  /** Ends it when it was never started. */
  discard(): Promise<void>;
}

export function prepareProducer(spec: ProducerSpec): PreparedProducer {
  const entry = new URL('producer-process.ts', import.meta.url).pathname;
  const [command, ...args] = [...dyingWithUs(), process.execPath, entry, JSON.stringify(spec)];
  const child = spawn(command, args, { stdio: ['pipe', 'inherit', 'inherit'] });
  child.stdin.on('error', () => undefined);
  const exited = once(child, 'exit');
  const kill = async (signal: NodeJS.Signals): Promise<void> => {
    child.kill(signal);
    if (!(await within(exit_ms, exited))) child.kill('SIGKILL');
    await exited;
  };
  return {
    start() {
      const earlier = existsSync(spec.record) ? statSync(spec.record).size : 0;
      child.stdin.write('start\n');
      return {
        exited,
        opened: async () =>
          eventually(
            'the producer has opened its file',
            () => opensAfter(spec.record, earlier),
            opens_within_ms,
          ),
        kill,
      };
    },
    discard: async () => kill('SIGKILL'),
  };
}

/** Whether a producer has written that it opened the file, behind what the record held before. Only that is read: it grows. */
function opensAfter(record: string, earlier: number): boolean {
  if (!existsSync(record)) return false;
  const file = openSync(record, 'r');
  try {
    const head = Buffer.alloc(record_head_bytes);
    const bytes = readSync(file, head, 0, head.length, earlier);
    return head.toString('utf8', 0, bytes).includes('open ');
  } finally {
    closeSync(file);
  }
}

interface AcceptedRun {
  readonly epoch: number;
  readonly lo: number;
  readonly hi: number;
  readonly at_us: number;
}

export interface Accepted {
  readonly sync: readonly AcceptedRun[];
  readonly lazy: readonly AcceptedRun[];
  /** Starts that got as far as having an epoch. */
  readonly opened: readonly number[];
  /** What the producer itself found wrong. */
  readonly faults: readonly string[];
  readonly emptied: boolean;
}

/** A line that was cut by a kill is no acceptance. */
export async function readRecord(record: string): Promise<Accepted> {
  const text = await readFile(record, 'utf8').catch(() => '');
  const lines = text.split('\n').slice(0, -1);
  const runs = (kind: string): AcceptedRun[] =>
    lines
      .filter((line) => line.startsWith(`${kind} `))
      .map((line) => {
        const [, epoch = 0, lo = 0, hi = 0, at_us = 0] = line.split(' ').map(Number);
        return { epoch, lo, hi, at_us };
      });
  return {
    sync: runs('sync'),
    lazy: runs('lazy'),
    opened: runs('open').map(({ epoch }) => epoch),
    faults: lines.filter((line) => line.startsWith('fault ')),
    emptied: lines.includes('empty'),
  };
}

/** What was accepted and never arrived. */
export interface Lost {
  readonly accepted: number;
  readonly lost: number;
  /** When the lost ones were accepted, microseconds of the monotonic clock. */
  readonly at_us: readonly number[];
}

export function lostOf(
  runs: readonly AcceptedRun[],
  arrived: Readonly<Record<number, readonly Range[]>>,
): Lost {
  let accepted = 0;
  let lost = 0;
  const at_us: number[] = [];
  const seen = new Map(Object.entries(arrived).map(([epoch, ranges]) => [Number(epoch), finder(ranges)]));
  for (const run of runs) {
    const has = seen.get(run.epoch) ?? (() => false);
    for (let seq = run.lo; seq <= run.hi; seq++) {
      accepted += 1;
      if (has(seq)) continue;
      lost += 1;
      at_us.push(run.at_us);
    }
  }
  return { accepted, lost, at_us };
}

/** Ranges are in order, so the one that could hold a number is found by halving. */
function finder(ranges: readonly Range[]): (seq: number) => boolean {
  return (seq) => {
    let [from, to] = [0, ranges.length - 1];
    while (from <= to) {
      const middle = (from + to) >> 1;
      const [lo, hi] = ranges[middle] ?? [0, -1];
      if (seq < lo) to = middle - 1;
      else if (seq > hi) from = middle + 1;
      else return true;
    }
    return false;
  };
}
