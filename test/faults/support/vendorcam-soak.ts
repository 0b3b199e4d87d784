/** Cameras through restarts, pulled cables, lost sessions and moods, with moves in between: the core of the soak. */
import { expect } from 'vitest';
import { sleep } from '../../../src/platform/time.ts';
import type { Mood } from '../../fakes/fake-vendor-camera.ts';
import { eventually } from '../../support/eventually.ts';
import { vendorcamLab } from '../../support/cameras/vendorcam-lab.ts';

const never = new AbortController().signal;

const moods: readonly Mood[] = ['garbage', 'cuts off', 'slow', 'not UTF-8', 'redirects', 'too short'];

/** Goes through `rounds` of trouble. At the end events flow, nothing moves, and nothing is left open. */
export async function soak(rounds: number): Promise<void> {
  const it = await vendorcamLab({ secure: true, limits: { request_ms: 800 } });
  const { camera } = it;
  try {
    it.start();
    await it.online();
    for (let round = 0; round < rounds; round += 1) {
      const moving = it.command('ptz_move', { direction: 'left' }).catch(() => undefined);
      await trouble(round, it);
      await moving;
      camera.mood = 'well';
      await camera.start();
      camera.camera.motion = !camera.camera.motion;
      await eventually(
        `motion is told in round ${round}`,
        () => it.feed('motion').at(-1)?.['detected'] === camera.camera.motion && isOnline(it),
      );
      await eventually('nothing moves', () => !camera.camera.motor.isMoving);
      it.hub.outbox.clear();
    }
    expect(camera.busiest).toBe(1);
    // Each restart and each lost session costs one login, and nothing else does.
    expect(camera.sessions.logins).toBeLessThanOrEqual(rounds + 1);
    expect(camera.sessions.open).toBe(1);
  } finally {
    await it.hub.stop();
  }
  expect(camera.sessions.open).toBe(0);
  await it.stop();
}

type Lab = Awaited<ReturnType<typeof vendorcamLab>>;

function isOnline(it: Lab): boolean {
  return it.asset(it.camera.camera.name)?.status === 'online';
}

async function trouble(round: number, it: Lab): Promise<void> {
  const { camera } = it;
  if (round % 4 === 0) await camera.lose();
  else if (round % 4 === 1) camera.sessions.forgetAll();
  else if (round % 4 === 2) camera.mood = moods[Math.floor(round / 4) % moods.length] ?? 'well';
  else await it.restart();
  await sleep(300, never);
}
