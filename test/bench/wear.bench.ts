/** Bytes that reach the flash for each message, at the block device itself: file system and journal included. */
import { join } from 'node:path';
import { startMosquitto, unthrottled } from '../support/brokers/broker.ts';
import { diskMissing } from '../support/disk/disks.ts';
import { startSubscriber } from '../support/brokers/subscriber.ts';
import type { EngineChoice } from './engines/engine.ts';
import type { Bench, BenchContext, Figure } from './figure.ts';
import { withMeteredDisk } from './support/metered-disk.ts';
import { startSubject } from './support/subject.ts';

const per_second = 200;
const arrive_ms = 20_000;
/** Nobody listens on this port of the loopback. */
const nowhere = 'mqtt://127.0.0.1:1';

interface Case {
  readonly choice: (file: string) => EngineChoice;
  readonly durability: 'lazy' | 'sync';
  readonly online: boolean;
}

const cases = {
  plain: { choice: (file) => ({ kind: 'fifo', file, commit_ms: 0 }), durability: 'lazy', online: true },
  lazy_online: { choice: (file) => ({ kind: 'connector', file }), durability: 'lazy', online: true },
  lazy_offline: {
    choice: (file) => ({ kind: 'connector', file, offline: true }),
    durability: 'lazy',
    online: false,
  },
  sync: { choice: (file) => ({ kind: 'connector', file }), durability: 'sync', online: true },
} as const satisfies Record<string, Case>;

async function measure({ choice, durability, online }: Case, seconds: number): Promise<number> {
  return withMeteredDisk(async (dir, writtenBytes) => {
    const broker = await startMosquitto({ conf: unthrottled });
    const subscriber = await startSubscriber(broker.port);
    const url = online ? broker.url : nowhere;
    const subject = await startSubject({ choice: choice(join(dir, 'buffer.db')), target: { url } });
    const before = await writtenBytes();
    const load = { kind: 'paced', per_second, seconds, durabilities: [durability], data: 'stamped' } as const;
    const sent = await subject.load(load);
    if (online) {
      const seen = await subscriber.until(({ unique }) => unique >= sent, arrive_ms);
      if (seen.unique < sent) throw new Error(`${seen.unique} of ${sent} messages arrived`);
    }
    const bytes = (await writtenBytes()) - before;
    await subject.close();
    await subscriber.stop();
    await broker.stop();
    return bytes / sent;
  });
}

async function run({ long, say }: BenchContext): Promise<readonly Figure[]> {
  const about = { unit: 'bytes/msg on the device', against: 'one transaction each, online' };
  const targets = { lazy_online: '<= 60', lazy_offline: '<= 1300', sync: '-' } as const;
  const figures = ['lazy_online', 'lazy_offline', 'sync'] as const;
  if (diskMissing()) {
    const nothing = { ...about, value: null, skipped: 'needs root and loop devices' };
    return figures.map((figure) => Object.assign({ figure, target: targets[figure] }, nothing));
  }
  const seconds = long ? 60 : 12;
  const bytesOf = async (name: keyof typeof cases): Promise<number> => {
    const bytes = await measure(cases[name], seconds);
    say(`${name}: ${Math.round(bytes)} bytes a message`);
    return bytes;
  };
  const against_value = await bytesOf('plain');
  const measured: Figure[] = [];
  for (const figure of figures) {
    measured.push({ figure, ...about, value: await bytesOf(figure), against_value, target: targets[figure] });
  }
  return measured;
}

export const bench: Bench = { name: 'wear', run };
