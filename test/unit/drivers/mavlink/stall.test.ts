/** A stall of the process: nothing was silent, since nothing could be received; and simulated vehicles fly on. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { Part } from '../../../../drivers/mavlink/vehicles/part.ts';
import { own_stalls } from '../../../../src/platform/stalls.ts';

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
        setHealth: () => undefined,
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
