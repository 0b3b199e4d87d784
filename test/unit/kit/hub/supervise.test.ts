/** A driver as a device session: what happens when it fails, and when it does not stop. */
import { getEventListeners } from 'node:events';
import { expect, it, vi } from 'vitest';
import { texts as device_texts } from '../../../../src/toolkit/device/texts.ts';
import { DeviceRejected, DeviceUnreachable } from '../../../../src/platform/errors.ts';
import {
  type DriverState,
  stop_deadline_ms,
  supervise,
  type Supervised,
} from '../../../../src/kit/hub/host.ts';
import { aborted, sleep } from '../../../../src/platform/time.ts';
import { recordingLog } from '../../../support/recording-log.ts';
import { useFakeTime } from '../../../support/fake-time.ts';
import { texts } from '../../../../src/kit/hub/texts.ts';

useFakeTime();

function start(run: Supervised['run']) {
  const stopping = new AbortController();
  const log = recordingLog();
  const states: DriverState[] = [];
  const done = supervise({ log, signal: stopping.signal, run, onState: (state) => states.push(state) });
  return { stopping, log, states, done };
}

it('resolves with the state stopped when the driver ends after its signal aborted', async () => {
  const { stopping, states, done } = start(async (signal, onUp) => {
    onUp();
    await aborted(signal);
  });
  stopping.abort();
  await done;
  expect(states.map((each) => each.state)).toEqual(['starting', 'up', 'stopped']);
});

it('retries after pauses that grow from one second to one minute', async () => {
  const starts: number[] = [];
  const { stopping, done } = start(async () => {
    starts.push(performance.now());
    throw new DeviceUnreachable('away');
  });
  await vi.advanceTimersByTimeAsync(600_000);
  stopping.abort();
  await done;
  const pauses = starts.slice(1).map((each, index) => each - (starts[index] ?? 0));
  for (const [index, pause] of pauses.entries()) {
    const full = Math.min(1_000 * 2 ** index, 60_000);
    expect(pause).toBeGreaterThanOrEqual(full / 2 - 1);
    expect(pause).toBeLessThanOrEqual(full + 1);
  }
  expect(pauses.length).toBeGreaterThan(9);
});

it('logs an outage once when it begins and once when it is over, with its duration', async () => {
  let attempts = 0;
  const { stopping, log, done } = start(async (signal, onUp) => {
    attempts += 1;
    if (attempts < 4) throw new DeviceUnreachable('away');
    onUp();
    await aborted(signal);
  });
  await vi.advanceTimersByTimeAsync(20_000);
  stopping.abort();
  await done;
  expect(log.at('warn')).toEqual([device_texts.is_unavailable('device')]);
  expect(log.at('info')).toEqual([device_texts.is_back('device')]);
  const { down_s } = log.lines.find((line) => line.level === 'info')?.facts ?? {};
  expect(down_s).toBeGreaterThanOrEqual(3.5);
  expect(down_s).toBeLessThanOrEqual(7.1);
});

it('resets the back-off only after the device was served for a while', async () => {
  const starts: number[] = [];
  const { stopping, done } = start(async (signal, onUp) => {
    starts.push(performance.now());
    onUp();
    await sleep(starts.length === 6 ? 40_000 : 100, signal);
    throw new DeviceUnreachable('lost');
  });
  await vi.advanceTimersByTimeAsync(120_000);
  stopping.abort();
  await done;
  const gap = (run: number, up_ms: number): number => (starts[run] ?? 0) - (starts[run - 1] ?? 0) - up_ms;
  expect(gap(5, 100)).toBeGreaterThanOrEqual(8_000);
  expect(gap(6, 40_000)).toBeLessThanOrEqual(1_001);
});

it('shows a device that rejects the connector as rejected, and tries it again hours later', async () => {
  let runs = 0;
  const { stopping, states, done } = start(async () => {
    runs += 1;
    throw new DeviceRejected('camera 10.0.0.7: password refused');
  });
  await vi.advanceTimersByTimeAsync(3_599_000);
  expect(runs).toBe(1);
  expect(states.at(-1)).toMatchObject({ state: 'rejected', reason: 'camera 10.0.0.7: password refused' });
  await vi.advanceTimersByTimeAsync(3_602_000);
  expect(runs).toBe(2);
  stopping.abort();
  await done;
});

it('treats a driver that throws before its first await like any other failure', async () => {
  const { stopping, states, done } = start(() => {
    throw new TypeError('undefined is not a function');
  });
  await vi.advanceTimersByTimeAsync(0);
  expect(states.at(-1)).toMatchObject({ state: 'down', reason: 'undefined is not a function' });
  stopping.abort();
  await done;
});

it('treats a driver that ends without a signal as lost', async () => {
  const { stopping, states, done } = start(async () => undefined);
  await vi.advanceTimersByTimeAsync(0);
  expect(states.at(-1)).toMatchObject({ state: 'down', reason: texts.driver_ended });
  stopping.abort();
  await done;
});

it('abandons a driver that does not stop in time, and logs it', async () => {
  const { stopping, states, log, done } = start(async () => new Promise<never>(() => undefined));
  stopping.abort();
  await vi.advanceTimersByTimeAsync(stop_deadline_ms - 1);
  expect(states.at(-1)?.state).toBe('starting');
  await vi.advanceTimersByTimeAsync(1);
  await done;
  expect(states.at(-1)?.state).toBe('hung');
  expect(log.at('error')).toEqual([texts.driver_abandoned]);
});

it('does not count a stall of the process against a driver that stops', async () => {
  const { stopping, states, log, done } = start(async (signal) => {
    await aborted(signal);
    await sleep(2_000, new AbortController().signal);
    // Stands for the input and output that a device needs after it.
    await sleep(10, new AbortController().signal);
  });
  stopping.abort();
  await vi.advanceTimersByTimeAsync(0);
  // All timers of these seconds fire together, as in a process that had no processor meanwhile.
  vi.advanceTimersByTime(5_000);
  await vi.advanceTimersByTimeAsync(50);
  await done;
  expect(states.at(-1)?.state).toBe('stopped');
  expect(log.at('error')).toEqual([]);
});

it('swallows what an abandoned driver throws later', async () => {
  const { stopping, done } = start(async () => {
    await new Promise((resolve) => {
      setTimeout(resolve, 10_000);
    });
    throw new Error('far too late');
  });
  stopping.abort();
  await vi.advanceTimersByTimeAsync(20_000);
  await expect(done).resolves.toBeUndefined();
});

it('aborts the signal of a failed run and leaves no listener on the long-lived one', async () => {
  const signals: AbortSignal[] = [];
  const { stopping, done } = start(async (signal) => {
    signals.push(signal);
    throw new DeviceUnreachable('away');
  });
  await vi.advanceTimersByTimeAsync(300_000);
  expect(signals.length).toBeGreaterThan(5);
  expect(signals.every((signal) => signal.aborted)).toBe(true);
  // The one listener is that of the pause which is going on.
  expect(getEventListeners(stopping.signal, 'abort')).toHaveLength(1);
  stopping.abort();
  await done;
});

it('does not start a driver whose signal has aborted already', async () => {
  const run = vi.fn<Supervised['run']>();
  const states: string[] = [];
  await supervise({
    log: recordingLog(),
    signal: AbortSignal.abort(),
    run,
    onState: ({ state }) => states.push(state),
  });
  expect(run).not.toHaveBeenCalled();
  expect(states.at(-1)).toBe('stopped');
});
