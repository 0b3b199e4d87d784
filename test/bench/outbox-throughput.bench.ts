/** How many messages a second go through the outbox, beside MQTT.js that keeps everything in memory. */
import { join } from 'node:path';
import { startMosquitto, unthrottled } from '../support/brokers/broker.ts';
import { startSubscriber } from '../support/brokers/subscriber.ts';
import type { EngineChoice } from './engines/engine.ts';
import { median, type Bench, type BenchContext } from './figure.ts';
import { startSubject } from './support/subject.ts';

type Side = 'sync' | 'lazy' | 'mqttjs';
const sides: readonly Side[] = ['mqttjs', 'sync', 'lazy'];
const ahead_max = 2_000;
const arrive_ms = 60_000;

/** Messages a second as the subscriber saw them. */
async function measure(side: Side, messages: number, file: string): Promise<number> {
  const broker = await startMosquitto({ conf: unthrottled });
  const subscriber = await startSubscriber(broker.port);
  const choice: EngineChoice =
    side === 'mqttjs' ? { kind: 'mqttjs', protocol: 5, keepalive_s: 30 } : { kind: 'connector', file };
  const subject = await startSubject({ choice, target: { url: broker.url } });
  await subscriber.reset();
  const durability = side === 'sync' ? 'sync' : 'lazy';
  await subject.load({ kind: 'closed', messages, ahead_max, durabilities: [durability], data: 'stamped' });
  const seen = await subscriber.until(({ unique }) => unique >= messages, arrive_ms);
  await subject.close();
  await subscriber.stop();
  await broker.stop();
  if (seen.unique < messages) throw new Error(`${side}: only ${seen.unique} of ${messages} arrived`);
  return ((seen.messages - 1) * 1e6) / (seen.last_us - seen.first_us);
}

async function run({ long, dir, say, calm }: BenchContext) {
  const [rounds, messages] = long ? [7, 120_000] : [3, 60_000];
  const rates: Record<Side, number[]> = { mqttjs: [], sync: [], lazy: [] };
  for (let round = 1; round <= rounds; round++) {
    for (const side of sides) {
      await calm();
      rates[side].push(await measure(side, messages, join(dir, `${side}-${round}.db`)));
    }
    say(
      `round ${round} of ${rounds}: ${sides.map((side) => `${side} ${Math.round(rates[side].at(-1) ?? 0)}/s`).join(', ')}`,
    );
  }
  const against_value = median(rates.mqttjs);
  const figure = (side: Side, target: string) => ({
    figure: side,
    value: median(rates[side]),
    unit: 'msg/s',
    against: 'MQTT.js in memory, 64 outstanding',
    against_value,
    target,
  });
  return [figure('sync', '>= 0.8 x'), figure('lazy', '>= 0.9 x')];
}

export const bench: Bench = { name: 'outbox-throughput', run };
