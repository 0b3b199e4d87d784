/** What polling sixteen vendor cameras costs, and how soon a subscriber of the broker hears of their motion. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { vendorcam } from '../../../drivers/vendorcam/vendorcam.ts';
import { sleep } from '../../../src/platform/time.ts';
import { hubLab } from '../../support/kit/hub-lab.ts';
import { eventually } from '../../support/eventually.ts';
import { password } from '../../support/cameras/vendorcam-lab.ts';
import { monotonic_us } from '../../support/witness.ts';
import { type Bench, type BenchContext, type Figure, median } from '../figure.ts';
import { motionDelays } from '../support/motion-delay.ts';

const forever = new AbortController().signal;
const settle_ms = 5_000;
const poll_ms = 2_000;

async function run({ dir, long, say, calm }: BenchContext): Promise<readonly Figure[]> {
  const password_file = join(dir, 'password');
  await writeFile(password_file, password, { mode: 0o600 });
  const cameras = fork(new URL('../processes/vendorcam-cameras-process.ts', import.meta.url));
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
    const cpu_pct = (user + system) / 10_000 / seconds;
    await lab.stop();
    const waits = await motionDelays({
      dir,
      drivers: [{ driver: 'vendorcam', options: { hosts } }],
      cameras: ports.length,
      edges: 2 * ports.length,
      pauseMs: () => Math.random() * poll_ms,
      see: async (edge) => {
        const detected = edge < ports.length;
        cameras.send({ index: edge % ports.length, motion: detected });
        return { at_us: monotonic_us(), detected };
      },
    });
    say(`the longest wait for motion was ${Math.round(Math.max(...waits))} ms`);
    const none = { against: '-', against_value: null };
    return [
      { figure: 'cpu_pct', value: cpu_pct, unit: '% of one core', ...none, target: '< 5' },
      {
        figure: 'motion_p50_ms',
        value: median(waits),
        unit: 'ms from camera to subscriber',
        ...none,
        target: `< ${poll_ms}`,
      },
    ];
  } finally {
    await lab.stop();
    cameras.disconnect();
  }
}

export const bench: Bench = { name: 'vendorcam', run };
