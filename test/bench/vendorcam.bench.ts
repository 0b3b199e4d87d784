/** What polling sixteen vendor cameras costs, and how soon their motion is known. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { vendorcam } from '../../drivers/vendorcam/vendorcam.ts';
import { sleep } from '../../src/platform/time.ts';
import { hubLab } from '../support/hub-lab.ts';
import { eventually } from '../support/eventually.ts';
import { password } from '../support/vendorcam-lab.ts';
import { type Bench, type BenchContext, type Figure, median } from './figure.ts';

const forever = new AbortController().signal;
const settle_ms = 5_000;
const poll_ms = 2_000;

async function run({ dir, long, say, calm }: BenchContext): Promise<readonly Figure[]> {
  const password_file = join(dir, 'password');
  await writeFile(password_file, password, { mode: 0o600 });
  const cameras = fork(new URL('vendorcam-cameras-process.ts', import.meta.url));
  const [ports] = (await once(cameras, 'message')) as [readonly number[]];
  await calm();
  const lab = hubLab({ configured: ['cameras'], state_dir: dir });
  try {
    const hosts = ports.map((port, index) => ({
      name: `cam-${index}`,
      host: '127.0.0.1',
      port,
      password_file,
    }));
    void lab.run(vendorcam, 'cameras', { options: { hosts } });
    await eventually('all are online', () => lab.hub.assets().length === ports.length);
    await sleep(settle_ms, forever);
    const seconds = long ? 60 : 20;
    const before = process.cpuUsage();
    await sleep(seconds * 1_000, forever);
    const { user, system } = process.cpuUsage(before);
    const waits: number[] = [];
    for (let round = 0; round < 2 * ports.length; round += 1) {
      const motion = round < ports.length;
      lab.outbox.clear();
      await sleep(Math.random() * poll_ms, forever);
      const begin_ms = performance.now();
      cameras.send({ index: round % ports.length, motion });
      await lab.outbox.until(
        ({ channel, data }) => channel.endsWith('/motion') && data?.['detected'] === motion,
      );
      waits.push(performance.now() - begin_ms);
    }
    say(`the longest wait for motion was ${Math.round(Math.max(...waits))} ms`);
    const none = { against: '-', against_value: null };
    const cpu_pct = (user + system) / 10_000 / seconds;
    return [
      { figure: 'cpu_pct', value: cpu_pct, unit: '% of one core', ...none, target: '< 5' },
      { figure: 'motion_p50_ms', value: median(waits), unit: 'ms', ...none, target: `< ${poll_ms}` },
    ];
  } finally {
    await lab.stop();
    cameras.disconnect();
  }
}

export const bench: Bench = { name: 'vendorcam', run };
