/** A service with 1,000 kits in a process of its own: plays changes of kits, and reports what its memory and processor are. */
import { channels } from '../../../src/contract/topics.ts';
import { sleep } from '../../../src/platform/time.ts';
import { samples } from '../../support/contract-samples.ts';
import { kitIds } from '../../support/service/page-fleet.ts';
import { startServiceLab } from '../../support/service/service-lab.ts';

const [kits = '', sockets = ''] = process.argv.slice(2);
const ids = kitIds(Number(kits));
const every_ms = 100;

const lab = await startServiceLab(ids[0] ?? '', {
  socket_limits: { sockets_per_key: Number(sockets), kits_per_socket: 64 },
});
for (const kit of ids) {
  const state = { ...samples['kitState'], name: `Kit ${kit.slice(0, 8)}`, degraded: [] };
  await lab.publish(channels.state, state, { kit });
  await lab.publish(channels.telemetry, samples['kitTelemetry'] ?? {}, { kit });
}
let changes_per_s = 0;
let next = 0;

/** Kits take turns, each with another battery than before. */
async function play(): Promise<void> {
  for (let step = 0; ; step += 1) {
    await sleep(every_ms, new AbortController().signal);
    for (let i = 0; i < (changes_per_s * every_ms) / 1_000; i += 1) {
      const kit = ids[next % ids.length] ?? '';
      next += 1;
      await lab.publish(channels.telemetry, { ...samples['kitTelemetry'], battery: step % 100 }, { kit });
    }
  }
}

process.on('message', (wanted: { readonly changes_per_s?: number }) => {
  if (wanted.changes_per_s !== undefined) changes_per_s = wanted.changes_per_s;
  globalThis.gc?.();
  const { rss, heapUsed, external } = process.memoryUsage();
  const { user, system } = process.cpuUsage();
  process.send?.({
    rss_mb: rss / 1e6,
    held_mb: (heapUsed + external) / 1e6,
    cpu_ms: (user + system) / 1_000,
  });
});
process.on('disconnect', () => process.exit(0));
process.send?.({ url: lab.url, key: await lab.giveKey({ kits: ids }) });
await play();
