/** A driver as a device session: what happens when it fails, and when it does not stop. */
import { expect, it, vi } from 'vitest';
import { DeviceRejected } from '../../../../src/platform/errors.ts';
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
