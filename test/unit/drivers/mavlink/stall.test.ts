/** A stall of the process: nothing was silent, since nothing could be received; and simulated vehicles fly on. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { Part } from '../../../../drivers/mavlink/vehicles/part.ts';
import { own_stalls } from '../../../../src/platform/stalls.ts';
import { FakeDrone } from '../../../fakes/fake-drone.ts';
import { eventually } from '../../../support/eventually.ts';

/** Runs nothing else for `ms`. */
function stall(ms: number): void {
  const until_ms = performance.now() + ms;
  while (performance.now() < until_ms);
}

describe('A component of a vehicle', () => {
  it('is offline after a silence, not after a stall during which it could not be received', () => {
    const end = new AbortController();
    onTestFinished(() => end.abort());
    own_stalls.watch(end.signal);
    const states: boolean[] = [];
    const part = new Part({
      parent_key: 'mavlink:1',
      parent_name: 'Falcon',
      compid: 154,
      part: 'gimbal',
      type: 'sensor',
      now_ms: performance.now(),
      offline_after_ms: 550,
      announce: () => ({
        publish: () => undefined,
        setPosition: () => undefined,
        setOnline: (online) => void states.push(online),
        remove: () => undefined,
      }),
      request: () => undefined,
      onRefused: () => undefined,
    });
    stall(600);
    part.tick(performance.now());
    expect(states).toEqual([]);
    part.tick(performance.now() + 1_100);
    expect(states).toEqual([false]);
  });
});

describe('A simulated vehicle', () => {
  it('flies as fast as time passes, however late its steps are', async () => {
    const drone = new FakeDrone({ port: 9, airborne: true });
    onTestFinished(() => drone.stop());
    await drone.start();
    drone.flight.mode = 'GUIDED';
    drone.flight.target = { ...drone.flight.home, height_m: 1_000 };
    const { height_m } = drone.flight;
    const begin_ms = performance.now();
    await eventually('it climbs', () => drone.flight.height_m > height_m);
    stall(400);
    const climbed_m = drone.flight.height_m;
    const climb_mps = 3;
    await eventually('the next step', () => drone.flight.height_m > climbed_m);
    const steps_s = 0.1;
    expect(drone.flight.height_m - height_m).toBeGreaterThan(climb_mps * (0.4 - steps_s));
    expect(drone.flight.height_m - height_m).toBeLessThanOrEqual(
      climb_mps * ((performance.now() - begin_ms) / 1_000 + steps_s),
    );
  });
});
