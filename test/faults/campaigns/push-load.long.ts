/** 15 drones at 1 Hz with one API key for a minute, at the limits of a configuration that names none. Prints statuses and times. */
import { expect, it } from 'vitest';
import { channels } from '../../../src/contract/topics.ts';
import { sleep } from '../../../src/platform/time.ts';
import { kit_id, samples } from '../../support/contract-samples.ts';
import { startServiceLab } from '../../support/service/service-lab.ts';
import { numberOf } from '../support/numbers.ts';

const drones = 15;
const seconds = numberOf('FAULTS_PUSH_S', 60);
const never = new AbortController().signal;

it('stores each of 900 locations that 15 drones push at 1 Hz with one key', async () => {
  const lab = await startServiceLab(kit_id);
  try {
    await lab.publish(channels.state, samples['kitState'] ?? {});
    const headers = { 'x-api-key': lab.key, 'content-type': 'application/json' };
    const post = async (path: string, body: object) =>
      fetch(`${lab.url}/api/kits/${kit_id}/assets${path}`, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
      });
    const ids: string[] = [];
    for (let n = 0; n < drones; n += 1) {
      const { id } = (await (await post('', { name: `Drone ${n}`, type: 'drone' })).json()) as { id: string };
      ids.push(id);
    }
    const statuses = new Map<number, number>();
    const times_ms: number[] = [];
    const push = async (id: string, lat: number): Promise<void> => {
      const begun_ms = performance.now();
      const { status } = await post(`/${id}/location`, { lat, lon: 8.5, alt_m: 500 });
      times_ms.push(performance.now() - begun_ms);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    };
    const fly = async (id: string, index: number): Promise<void> => {
      // Each drone has its own second, and keeps to it unless an answer takes longer: fixes under way at once may overtake each other.
      const start_ms = performance.now() + (index * 1_000) / drones;
      for (let n = 0; n < seconds; n += 1) {
        await sleep(Math.max(0, start_ms + n * 1_000 - performance.now()), never);
        await push(id, 47 + n / 10_000);
      }
    };
    await Promise.all(ids.map(fly));
    const sorted = times_ms.sort((a, b) => a - b);
    const at = (part: number): string => (sorted[Math.floor(part * (sorted.length - 1))] ?? 0).toFixed(1);
    console.log(
      `${drones} drones for ${seconds} s: ${JSON.stringify([...statuses])}, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`,
    );
    expect([...statuses]).toEqual([[204, drones * seconds]]);
    const last = 47 + (seconds - 1) / 10_000;
    for (const id of ids) expect(await lab.store.asset(kit_id, id)).toMatchObject({ lat: last });
  } finally {
    await lab.stop();
  }
});
