/** How soon a link is noticed that has died without a word, while 50 messages a second go into it. */
import { join } from 'node:path';
import { startMosquitto } from '../support/brokers/broker.ts';
import { startProxy } from '../support/brokers/proxy.ts';
import { monotonic_us } from '../support/witness.ts';
import { startSubscriber } from '../support/brokers/subscriber.ts';
import type { EngineChoice } from './engines/engine.ts';
import { median, type Bench, type BenchContext, type Figure } from './figure.ts';
import { startSubject } from './support/subject.ts';

const notice_max_ms = 120_000;
const pace = { kind: 'paced', per_second: 50, durabilities: ['lazy'], data: 'stamped' } as const;

async function measure(choice: EngineChoice): Promise<number> {
  const broker = await startMosquitto();
  const subscriber = await startSubscriber(broker.port);
  const proxy = await startProxy(broker.port);
  const subject = await startSubject({ choice, target: { url: `mqtt://127.0.0.1:${proxy.port}` } });
  await subject.load({ ...pace, seconds: 2 });
  proxy.stall();
  const dead_us = monotonic_us();
  const loaded = subject.load({ ...pace, seconds: notice_max_ms / 1000 });
  // The load goes on until the subject is closed, which is long before its time.
  loaded.catch(() => undefined);
  const noticed_us = await subject.lost(notice_max_ms);
  proxy.cut();
  await subject.close();
  await proxy.close();
  await subscriber.stop();
  await broker.stop();
  if (noticed_us === undefined)
    throw new Error(`${choice.kind} did not notice within ${notice_max_ms / 1000} s`);
  return (noticed_us - dead_us) / 1e6;
}

async function run({ long, dir, say }: BenchContext): Promise<readonly Figure[]> {
  const rounds = long ? 5 : 3;
  const keepalive_s = long ? 30 : 10;
  const own: number[] = [];
  for (let round = 1; round <= rounds; round++) {
    own.push(await measure({ kind: 'connector', file: join(dir, `${round}.db`) }));
    say(`round ${round} of ${rounds}: noticed after ${own.at(-1)?.toFixed(1)} s`);
  }
  const plain = await measure({ kind: 'mqttjs', protocol: 5, keepalive_s });
  return [
    {
      figure: 'seconds',
      value: median(own),
      unit: 's',
      against: `MQTT.js, keepalive ${keepalive_s} s`,
      against_value: plain,
      target: '<= 5',
    },
  ];
}

export const bench: Bench = { name: 'dead-link', run };
