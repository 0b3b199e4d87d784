/**
 * A connector at full speed in a process of its own, made to be killed. What it has accepted it writes to a file without
 * buffering, so that the numbers survive it: a sync message counts as accepted once `committed` has resolved.
 */
import { once } from 'node:events';
import { openSync, writeSync } from 'node:fs';
import { every } from '../../../src/platform/time.ts';
import type { Lane } from '../../../src/contract/lanes.ts';
import { startConnector } from '../../support/kit/connector.ts';
import { flight, stamped } from '../../support/gps.ts';
import { monotonic_us } from '../../support/witness.ts';
import type { ProducerSpec } from './producer.ts';

/** Messages of one kind in a row; one line of the record. */
const burst = 20;
const books_every_ms = 20;

const spec = JSON.parse(process.argv[2] ?? '{}') as ProducerSpec;
const record = openSync(spec.record, 'a');
const data = flight();

function note(
  kind: 'open' | 'sync' | 'lazy' | 'fault' | 'empty',
  ...values: readonly (number | string)[]
): void {
  writeSync(record, `${[kind, ...values].join(' ')}\n`);
}

// Everything is loaded by now.
await once(process.stdin, 'data');
process.stdin.destroy();
const connector = await startConnector({ file: spec.file, url: spec.url, ack: spec.ack });
const { outbox } = connector;
note('open', outbox.epoch);
if (outbox.opened.salvage) note('fault', 'the file was damaged');
const end = new AbortController();
process.on('SIGTERM', () => end.abort());

function acceptBurst(lane: Lane): { readonly lo: number; readonly hi: number } {
  const seqs = Array.from(
    { length: burst },
    (_, at) => connector.send(lane, at, stamped(data.next().value)).seq,
  );
  return { lo: Math.min(...seqs), hi: Math.max(...seqs) };
}

function acceptSync(lane: 'alarm' | 'task'): void {
  const { lo, hi } = acceptBurst(lane);
  outbox.committed().then(
    () => note('sync', outbox.epoch, lo, hi, monotonic_us()),
    () => undefined,
  );
}

let turn = 0;
function produce(): void {
  if (end.signal.aborted) return;
  if (outbox.ledger().buffered < spec.ahead_max) {
    turn += 1;
    if (turn % spec.sync_every === 0) acceptSync(turn % (2 * spec.sync_every) === 0 ? 'alarm' : 'task');
    else {
      const { lo, hi } = acceptBurst('feed');
      note('lazy', outbox.epoch, lo, hi, monotonic_us());
    }
  }
  setTimeout(produce, spec.pause_ms);
}

every(books_every_ms, end.signal, () => {
  const books = outbox.ledger();
  if (!books.balanced) note('fault', `the books do not balance: ${JSON.stringify(books)}`);
  if (!spec.produce && books.buffered === 0) {
    note('empty');
    end.abort();
  }
});
if (spec.produce) produce();
end.signal.addEventListener('abort', () => void connector.stop().then(() => process.exit(0)));
// The timers above do not keep the process alive.
setInterval(() => undefined, 60_000);
