/** What 32 ONVIF cameras cost the daemon, and how late their motion is: from the camera to a subscriber of the broker. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { onvif } from '../../../drivers/onvif/onvif.ts';
import { sleep } from '../../../src/platform/time.ts';
import { eventually } from '../../support/eventually.ts';
import { hubLab } from '../../support/kit/hub-lab.ts';
import { residentMb } from '../../support/process-stats.ts';
import { type Bench, type BenchContext, type Figure, median } from '../figure.ts';
import { motionDelays } from '../support/motion-delay.ts';

const cameras = 32;
const found_within_ms = 60_000;
const settle_ms = 10_000;
const edges = 41;
const edge_pause_ms = 200;

async function run({ dir, long, say, calm }: BenchContext): Promise<readonly Figure[]> {
  const child = fork(new URL('../processes/onvif-cameras-process.ts', import.meta.url), [String(cameras)]);
  const [{ ports }] = (await once(child, 'message')) as [{ readonly ports: readonly number[] }];
  const password_file = join(dir, 'password');
  await writeFile(password_file, 'bench', { mode: 0o600 });
  await calm();
  const lab = hubLab({ configured: ['cameras'], rates: { default: 1_000 } });
  const before_mb = await residentMb(process.pid);
  const list = ports.map((port, index) => ({
    name: `camera ${index}`,
    host: '127.0.0.1',
    port,
    username: 'kit',
    password_file,
  }));
  try {
    void lab.run(onvif, 'cameras', { options: { cameras: list } });
    const online = (): number => lab.hub.assets().filter(({ status }) => status === 'online').length;
    await eventually('all cameras are online', () => online() === cameras, found_within_ms);
    await sleep(settle_ms, new AbortController().signal);
    const cpu_pct = await cost(long ? 120 : 40);
    const rss_mb = (await residentMb(process.pid)) - before_mb;
    await lab.stop();
    await calm();
    const delays = await motionDelays({
      dir,
      drivers: [{ driver: 'onvif', options: { cameras: list } }],
      cameras,
      edges,
      // Motion does not follow upon motion: the pull that waits for it has begun.
      pauseMs: () => edge_pause_ms,
      see: async (edge) => {
        const detected = edge % 2 === 0;
        const told = once(child, 'message') as Promise<[{ readonly at_us: number }]>;
        child.send({ camera: 0, detected });
        const [{ at_us }] = await told;
        return { at_us, detected };
      },
    });
    say(`${cameras} cameras cost ${cpu_pct.toFixed(2)} % of a core and ${rss_mb.toFixed(0)} MB`);
    say(`motion took ${Math.max(...delays).toFixed(0)} ms at the longest`);
    return [
      figure('cpu_pct', cpu_pct, '% of one core', '< 5'),
      figure('rss_mb', rss_mb, 'MB beside the rest', '< 60'),
      figure('motion_p50_ms', median(delays), 'ms from camera to subscriber', '< 300'),
    ];
  } finally {
    child.disconnect();
    await lab.stop();
  }
}

/** All threads of this process while nothing moves. */
async function cost(seconds: number): Promise<number> {
  const before = process.cpuUsage();
  await sleep(seconds * 1_000, new AbortController().signal);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e4 / seconds;
}

function figure(name: string, value: number, unit: string, target: string): Figure {
  return { figure: name, value, unit, against: '-', against_value: null, target };
}

export const bench: Bench = { name: 'cameras', run };
