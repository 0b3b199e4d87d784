/** What polling twenty radios over HTTPS costs with the usual settings. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { vendorradio } from '../../../drivers/vendorradio/vendorradio.ts';
import { sleep } from '../../../src/platform/time.ts';
import { eventually } from '../../support/eventually.ts';
import { hubLab } from '../../support/kit/hub-lab.ts';
import type { Bench, BenchContext, Figure } from '../figure.ts';

const forever = new AbortController().signal;
const settle_ms = 5_000;

async function run({ dir, long, calm }: BenchContext): Promise<readonly Figure[]> {
  const password_file = join(dir, 'password');
  await writeFile(password_file, 'secret', { mode: 0o600 });
  const peers = fork(new URL('../processes/radios-process.ts', import.meta.url));
  const [ports] = (await once(peers, 'message')) as [readonly number[]];
  await calm();
  const rss_before_mb = process.memoryUsage().rss / 1e6;
  const lab = hubLab({ configured: ['radios'], state_dir: dir });
  try {
    const radios = ports.map((port, index) => ({
      kind: 'ubus',
      name: `radio-${index}`,
      host: '127.0.0.1',
      port,
      username: 'kit',
      password_file,
    }));
    void lab.run(vendorradio, 'radios', { options: { radios } });
    await eventually('all are online', () => lab.hub.assets().length === ports.length);
    await sleep(settle_ms, forever);
    const seconds = long ? 60 : 20;
    const before = process.cpuUsage();
    await sleep(seconds * 1_000, forever);
    const { user, system } = process.cpuUsage(before);
    const none = { against: '-', against_value: null };
    return [
      {
        figure: 'cpu_pct',
        value: (user + system) / 10_000 / seconds,
        unit: '% of one core',
        ...none,
        target: '< 1',
      },
      {
        figure: 'rss_mb',
        value: process.memoryUsage().rss / 1e6 - rss_before_mb,
        unit: 'MB more than without',
        ...none,
        target: '< 40',
      },
    ];
  } finally {
    await lab.stop();
    peers.disconnect();
  }
}

export const bench: Bench = { name: 'radios', run };
