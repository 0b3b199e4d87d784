/** How long the main thread is held up while the disk is as slow as a cheap card: every sync takes 20 ms more. */
import { join } from 'node:path';
import { startMosquitto, unthrottled } from '../support/brokers/broker.ts';
import { findProgram } from '../support/peers.ts';
import { startSubscriber } from '../support/brokers/subscriber.ts';
import { run as runProgram } from '../support/temporary.ts';
import type { EngineChoice } from './engines/engine.ts';
import { median, type Bench, type BenchContext, type Figure } from './figure.ts';
import { startSubject } from './support/subject.ts';

const slow_disk_us = 20_000;
const arrive_ms = 20_000;

async function measure(choice: EngineChoice, seconds: number, shim: string): Promise<number> {
  const broker = await startMosquitto({ conf: unthrottled });
  const subscriber = await startSubscriber(broker.port);
  const env = { LD_PRELOAD: shim, SLOW_DISK_US: String(slow_disk_us) };
  const subject = await startSubject({ choice, target: { url: broker.url } }, { env });
  await subject.load({
    kind: 'paced',
    per_second: 1_000,
    seconds,
    durabilities: ['sync', 'lazy'],
    data: 'stamped',
  });
  const { loop_p99_ms, sent } = await subject.report();
  const seen = await subscriber.until(({ unique }) => unique >= sent, arrive_ms);
  await subject.close();
  await subscriber.stop();
  await broker.stop();
  if (seen.unique < sent) throw new Error(`${choice.kind}: ${seen.unique} of ${sent} messages arrived`);
  return loop_p99_ms;
}

async function run({ long, dir, say, calm }: BenchContext): Promise<readonly Figure[]> {
  const about = {
    figure: 'p99_ms',
    unit: 'ms, sync + 20 ms',
    against: 'SQLite on the main thread',
    target: '< 10',
  };
  if (!findProgram('cc')) return [{ ...about, value: null, skipped: 'cc is not installed' }];
  const shim = join(dir, 'slow-disk.so');
  const source = new URL('support/slow-disk.c', import.meta.url).pathname;
  await runProgram('cc', '-shared', '-fPIC', '-O2', '-o', shim, source, '-ldl');
  const [rounds, seconds] = long ? [5, 15] : [3, 5];
  const own: number[] = [];
  const plain: number[] = [];
  for (let round = 1; round <= rounds; round++) {
    await calm();
    own.push(await measure({ kind: 'connector', file: join(dir, `own-${round}.db`) }, seconds, shim));
    const fifo: EngineChoice = { kind: 'fifo', file: join(dir, `plain-${round}.db`), commit_ms: 20 };
    plain.push(await measure(fifo, seconds, shim));
    say(
      `round ${round} of ${rounds}: ${own.at(-1)?.toFixed(1)} ms, on the main thread ${plain.at(-1)?.toFixed(1)} ms`,
    );
  }
  return [{ ...about, value: median(own), against_value: median(plain) }];
}

export const bench: Bench = { name: 'loop', run };
