/** Weeks of a camera in short: reboots, jumping clocks, pulled cables, cut replies; then it must all work as at first. */
import { getEventListeners } from 'node:events';
import { expect } from 'vitest';
import { onvif } from '../../../drivers/onvif/onvif.ts';
import { startFakeCamera } from '../../fakes/fake-onvif-camera.ts';
import { sleep } from '../../../src/platform/time.ts';
import { eventually } from '../eventually.ts';
import { cameraLab, said } from './onvif-lab.ts';
import { startProxy } from '../brokers/proxy.ts';
import { hubLab } from '../kit/hub-lab.ts';

const alarm = 'tns1:VideoSource/MotionAlarm';

/** `rounds` of mishaps in a fixed order. Rejects when events do not flow after one, or when something is left at the end. */
export async function soak(rounds: number): Promise<{ readonly heap_growth_mb: number }> {
  const lab = await cameraLab();
  const camera = await startFakeCamera({ auth: 'ws_security' });
  const proxy = await startProxy(camera.port);
  const stopping = new AbortController();
  const hub = hubLab({ configured: ['cameras'], rates: { default: 1_000_000 } });
  const options = {
    cameras: [await lab.entry(camera, { port: proxy.port })],
    pull_s: 1,
    motion_hold_max_s: 30,
    heartbeat_s: 5,
  };
  const before = process.getActiveResourcesInfo();
  const done = hub.run(onvif, 'cameras', { options, signal: stopping.signal });
  const mishaps: readonly (() => Promise<void> | void)[] = [
    () => camera.events.forgetAll(),
    () => void (camera.settings.skew_ms += 86_400_000),
    async () => camera.reboot(),
    () => camera.misbehave('PullMessages', oneTime('abort')),
    () => camera.misbehave('PullMessages', oneTime({ fault: 'ter:Busy' })),
    () => proxy.cut(),
    () => void (camera.settings.skew_ms = -3_600_000),
    async () => {
      proxy.stall();
      await sleep(500, stopping.signal);
      proxy.resume();
    },
    () => camera.misbehave('Renew', { fault: 'ter:ActionNotSupported' }),
  ];
  let heap_first_mb = 0;
  try {
    for (let round = 0; round < rounds; round += 1) {
      await mishaps[round % mishaps.length]?.();
      await flows(camera, hub);
      hub.outbox.clear();
      // The first rounds fill the caches of engine and libraries.
      if (round === Math.floor(rounds / 2)) heap_first_mb = heapMb();
    }
    const heap_growth_mb = heapMb() - heap_first_mb;
    expect(camera.events.size).toBeLessThanOrEqual(mishaps.length);
    stopping.abort();
    await done;
    expect(getEventListeners(stopping.signal, 'abort')).toEqual([]);
    await proxy.close();
    await camera.stop();
    await eventually('nothing is left', () => left(before).length === 0);
    return { heap_growth_mb };
  } finally {
    stopping.abort();
    await done;
    await hub.stop();
    await lab.stop();
    await camera.stop();
  }
}

/** Both edges arrive, however the camera has to be found again first. */
async function flows(
  camera: Awaited<ReturnType<typeof startFakeCamera>>,
  { outbox }: ReturnType<typeof hubLab>,
): Promise<void> {
  const patience_ms = 90_000;
  for (const value of ['true', 'false']) {
    camera.events.set(alarm, 'State', value);
    await outbox.until(
      said('motion', (data) => data['detected'] === (value === 'true')),
      patience_ms,
    );
  }
}

function oneTime<T>(how: T): () => T | 'normal' {
  let isUsed = false;
  return () => {
    if (isUsed) return 'normal';
    isUsed = true;
    return how;
  };
}

function heapMb(): number {
  return process.memoryUsage().heapUsed / 1e6;
}

/** Servers, sockets, timers and threads that were not there before. */
function left(before: readonly string[]): readonly string[] {
  const now = process.getActiveResourcesInfo();
  return [...new Set(now)].filter(
    (name) => now.filter((each) => each === name).length > before.filter((each) => each === name).length,
  );
}
