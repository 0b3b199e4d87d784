/** When the time of day counts as right, and what a step of it does. */
import { utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  clockEvidence,
  openClockEvidence,
  vouched,
  type ClockStep,
  systemClock,
} from '../../../src/platform/clock.ts';
import { testDirectory } from '../../support/test-directory.ts';

const today_ms = Date.UTC(2027, 5, 1);
const hour_ms = 3_600_000;
const unset_us = 16_000_000;

interface Machine {
  readonly error_us?: number | null;
  readonly file?: string;
}

/** A machine whose clocks and kernel the test holds in its hands. */
function machine({ error_us = unset_us, file = '/nowhere/synchronized' }: Machine = {}) {
  const state = { wall_ms: today_ms, mono_ms: 1_000, error_us };
  const steps: ClockStep[] = [];
  const clock = systemClock({
    evidence: clockEvidence(() => state.error_us, file),
    onStep: (step) => void steps.push(step),
    wall: () => state.wall_ms,
    mono: () => state.mono_ms,
  });
  return {
    state,
    steps,
    synced: () => clock.stamp().synced,
    pass(ms: number): void {
      state.wall_ms += ms;
      state.mono_ms += ms;
    },
  };
}

describe('the clock', () => {
  it('is not synced without evidence, however plausible its time is', () => {
    const { synced } = machine();
    expect(synced()).toBe(false);
    expect(machine({ error_us: null }).synced()).toBe(false);
  });

  it('is synced once the kernel knows its error, which is noticed within five seconds', () => {
    const lab = machine();
    expect(lab.synced()).toBe(false);
    lab.state.error_us = 20_000;
    lab.pass(4_000);
    expect(lab.synced()).toBe(false);
    lab.pass(1_000);
    expect(lab.synced()).toBe(true);
    // Ten hours without a time server: the kernel gives up, the clock still goes.
    lab.state.error_us = unset_us;
    lab.pass(10 * hour_ms);
    expect(lab.synced()).toBe(true);
  });

  it('is synced by the file of systemd-timesyncd, and after a step only by a newer one', async () => {
    const dir = await testDirectory();
    const file = join(dir, 'synchronized');
    const lab = machine({ error_us: null, file });
    expect(lab.synced()).toBe(false);
    writeFileSync(file, '');
    lab.pass(5_000);
    expect(lab.synced()).toBe(true);
    lab.state.wall_ms -= hour_ms;
    expect(lab.synced()).toBe(false);
    utimesSync(file, 1, 1);
    lab.pass(5_000);
    expect(lab.synced()).toBe(true);
  });

  it('is not synced before the date of this release', () => {
    const lab = machine({ error_us: 0 });
    lab.state.wall_ms = Date.UTC(2020, 0, 1);
    expect(lab.synced()).toBe(false);
  });

  it('reports a step once, and is trusted again only with new evidence', () => {
    const lab = machine({ error_us: 0 });
    expect(lab.synced()).toBe(true);
    lab.pass(60_000);
    lab.state.wall_ms -= hour_ms;
    // The kernel forgets its account of the clock when somebody sets it.
    lab.state.error_us = unset_us;
    expect(lab.synced()).toBe(false);
    lab.pass(1_000);
    expect(lab.synced()).toBe(false);
    const from_ms = today_ms + 60_000;
    expect(lab.steps).toEqual([{ from_ms, to_ms: from_ms - hour_ms, by_ms: -hour_ms }]);
    lab.state.error_us = 0;
    lab.pass(5_000);
    expect(lab.synced()).toBe(true);
    lab.state.wall_ms += hour_ms;
    lab.synced();
    expect(lab.steps.at(-1)).toMatchObject({ by_ms: hour_ms });
  });

  it('is not stepped when it is slewed, or read by a process that was stopped in between', () => {
    const lab = machine({ error_us: 0 });
    for (let second = 0; second < 3_600; second += 1) {
      lab.pass(1_000);
      lab.state.wall_ms += 0.5;
      lab.synced();
    }
    expect(lab.steps).toEqual([]);
    let readings = 0;
    const clock = systemClock({
      evidence: vouched,
      onStep: () => expect.unreachable(),
      wall: () => today_ms,
      mono: () => ((readings += 1) === 3 ? 10_000 : 0),
    });
    clock.stamp();
    clock.stamp();
  });

  it('of this machine can be read', async () => {
    const clock = systemClock({ evidence: await openClockEvidence() });
    expect(Math.abs(clock.stamp().time_ms - Date.now())).toBeLessThan(1_000);
  });
});
