/** How long a message takes from being handed over to a subscriber, at a steady rate. */
import { join } from 'node:path';
import { startMosquitto, unthrottled } from '../support/brokers/broker.ts';
import { startSubscriber } from '../support/brokers/subscriber.ts';
import type { EngineChoice } from './engines/engine.ts';
import { median, type Bench, type BenchContext } from './figure.ts';
import { startSubject } from './support/subject.ts';

type Side = 'sync' | 'lazy' | 'mqttjs';
const sides: readonly Side[] = ['mqttjs', 'sync', 'lazy'];
const arrive_ms = 10_000;
const warm_up = {
  kind: 'paced',
  per_second: 200,
  seconds: 1,
  durabilities: ['lazy'],
  data: 'stamped',
} as const;

interface Pace {
  readonly per_second: number;
  readonly seconds: number;
}

/** The 99th percentile, milliseconds. */
async function measure(side: Side, { per_second, seconds }: Pace, file: string): Promise<number> {
  const broker = await startMosquitto({ conf: unthrottled });
  const subscriber = await startSubscriber(broker.port);
  const choice: EngineChoice =
    side === 'mqttjs' ? { kind: 'mqttjs', protocol: 5, keepalive_s: 30 } : { kind: 'connector', file };
  const subject = await startSubject({ choice, target: { url: broker.url } });
  await subject.load(warm_up);
  await subject.acknowledgedAll(arrive_ms);
  await subscriber.reset();
  const durability = side === 'sync' ? 'sync' : 'lazy';
  await subject.load({ kind: 'paced', per_second, seconds, durabilities: [durability], data: 'stamped' });
  const expected = Math.floor(per_second * seconds);
  const seen = await subscriber.until(({ latency }) => (latency?.count ?? 0) >= expected, arrive_ms);
  await subject.close();
  await subscriber.stop();
  await broker.stop();
  if (!seen.latency || seen.latency.count < expected) throw new Error(`${side}: messages did not arrive`);
  return seen.latency.p99_ms;
}

async function run({ long, dir, say, calm }: BenchContext) {
  const measured: Record<string, number[]> = {};
  const add = async (side: Side, pace: Pace, round: number): Promise<void> => {
    const key = `${side} ${pace.per_second}`;
    const p99_ms = await measure(side, pace, join(dir, `${side}-${pace.per_second}-${round}.db`));
    (measured[key] ??= []).push(p99_ms);
    say(`${key}/s, round ${round}: p99 ${p99_ms.toFixed(1)} ms`);
  };
  for (let round = 1; round <= (long ? 5 : 3); round++) {
    for (const side of sides) {
      await calm();
      await add(side, { per_second: 1_000, seconds: long ? 15 : 4 }, round);
    }
    // At this pace the machine is idle: the sides do not disturb each other.
    await calm();
    await Promise.all(
      sides.map(async (side) => add(side, { per_second: 50, seconds: long ? 30 : 6 }, round)),
    );
  }
  const figure = (side: Side, per_second: number, target: string) => ({
    figure: per_second === 50 ? `${side}_50_p99_ms` : `${side}_p99_ms`,
    value: median(measured[`${side} ${per_second}`] ?? []),
    unit: `ms at ${per_second}/s`,
    against: 'MQTT.js in memory',
    against_value: median(measured[`mqttjs ${per_second}`] ?? []),
    target,
  });
  return [
    figure('lazy', 1_000, '<= 5'),
    figure('sync', 1_000, '<= 30'),
    figure('lazy', 50, '<= 5'),
    figure('sync', 50, '<= 30'),
  ];
}

export const bench: Bench = { name: 'latency', run };
