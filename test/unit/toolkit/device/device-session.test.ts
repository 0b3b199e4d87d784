/** The one retry loop for devices, driven by a table of events on a clock of its own. */
import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import {
  type DeviceSession,
  serveDevice,
  type SessionState,
  type SessionTiming,
} from '../../../../src/toolkit/device/device-session.ts';
import { retry_limits } from '../../../../src/toolkit/device/retry.ts';
import { texts } from '../../../../src/toolkit/device/texts.ts';
import { DeviceRejected, DeviceUnreachable, RetryLater } from '../../../../src/platform/errors.ts';
import { aborted } from '../../../../src/platform/time.ts';

/** What one attempt does: fails with this error, after it was up for `up_ms` if that is given. */
interface Attempt {
  readonly up_ms?: number;
  readonly error: Error;
}

/** A clock that advances only while the session sleeps or an attempt is up; no pause is shortened at random. */
function fakeTiming() {
  let now_ms = 0;
  const pauses: number[] = [];
  const timing: SessionTiming = {
    now_ms: () => now_ms,
    random: () => 1,
    sleep: async (ms) => {
      pauses.push(ms);
      now_ms += ms;
    },
  };
  return { timing, pauses, pass: (ms: number) => void (now_ms += ms) };
}

/** Plays the attempts one after the other; the session is stopped when they are used up. */
async function play(attempts: readonly Attempt[], more: Partial<DeviceSession> = {}) {
  const stopping = new AbortController();
  const clock = fakeTiming();
  const states: SessionState[] = [];
  let count = 0;
  await serveDevice({
    signal: stopping.signal,
    timing: clock.timing,
    run: async (_signal, onUp) => {
      const attempt = attempts[count];
      count += 1;
      if (!attempt) {
        stopping.abort();
        return;
      }
      if (attempt.up_ms !== undefined) {
        onUp();
        clock.pass(attempt.up_ms);
      }
      throw attempt.error;
    },
    onState: (state) => states.push(state),
    ...more,
  });
  return { states: states.map(({ state }) => state), all: states, pauses: clock.pauses };
}

const away = new DeviceUnreachable('away');
const rejection = new DeviceRejected('wrong password');
const passing = new DeviceRejected('wrong password', { may_pass: true });
const busy = new RetryLater('all sessions are taken', 900_000);
const { stable_ms } = retry_limits;
const hour_ms = 3_600_000;

describe('serveDevice', () => {
  it.each<{ what: string; attempts: Attempt[]; states: string[]; pauses: number[] }>([
    { what: 'an attempt that is stopped', attempts: [], states: [], pauses: [] },
    {
      what: 'a device that does not answer: pauses double',
      attempts: [{ error: away }, { error: away }, { error: away }],
      states: ['down', 'down', 'down'],
      pauses: [1_000, 2_000, 4_000],
    },
    {
      what: 'pauses that stop growing at a minute',
      attempts: Array.from({ length: 9 }, () => ({ error: away })),
      states: Array.from({ length: 9 }, () => 'down'),
      pauses: [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000],
    },
    {
      what: 'a device that is served, lost and comes back',
      attempts: [{ up_ms: stable_ms, error: away }, { error: away }, { up_ms: stable_ms, error: away }],
      states: ['up', 'down', 'down', 'up', 'down'],
      pauses: [1_000, 2_000, 1_000],
    },
    {
      what: 'a device that comes back only for a moment: pauses go on growing',
      attempts: [
        { up_ms: stable_ms - 1, error: away },
        { up_ms: stable_ms - 1, error: away },
        { up_ms: stable_ms - 1, error: away },
      ],
      states: ['up', 'down', 'up', 'down', 'up', 'down'],
      pauses: [1_000, 2_000, 4_000],
    },
    {
      what: 'a device that rejects the connector: pauses of hours, at most a day',
      attempts: Array.from({ length: 6 }, () => ({ error: rejection })),
      states: Array.from({ length: 6 }, () => 'rejected'),
      pauses: [2, 4, 8, 16, 24, 24].map((hours) => hours * hour_ms),
    },
    {
      what: 'a device that rejects, then is away, then rejects again: no quicker than before',
      attempts: [{ error: rejection }, { error: away }, { error: rejection }],
      states: ['rejected', 'down', 'rejected'],
      pauses: [2 * hour_ms, 1_000, 4 * hour_ms],
    },
    {
      what: 'a device that accepts the connector for long, then rejects it',
      attempts: [{ error: rejection }, { up_ms: stable_ms, error: rejection }],
      states: ['rejected', 'up', 'rejected'],
      pauses: [2 * hour_ms, 2 * hour_ms],
    },
    {
      what: 'a device that rejects what it accepted before: soon at first, then as after any rejection',
      attempts: Array.from({ length: 5 }, () => ({ error: passing })),
      states: Array.from({ length: 5 }, () => 'rejected'),
      pauses: [60_000, 300_000, 1_500_000, 2 * hour_ms, 4 * hour_ms],
    },
    {
      what: 'a device that names the pause',
      attempts: [{ error: busy }, { error: away }],
      states: ['down', 'down'],
      pauses: [900_000, 1_000],
    },
  ])('follows $what', async ({ attempts, states, pauses }) => {
    const played = await play(attempts);
    expect(played.states).toEqual(['starting', ...states, 'stopped']);
    expect(played.pauses).toEqual(pauses);
  });

  it('never waits for less than an hour after a rejection, whatever the random part', async () => {
    const { timing } = fakeTiming();
    const { all } = await play([{ error: rejection }], { timing: { ...timing, random: () => 0 } });
    expect(all[1]).toMatchObject({ state: 'rejected', retry_ms: retry_limits.rejected_first_ms / 2 });
    expect(retry_limits.rejected_first_ms / 2).toBeGreaterThanOrEqual(hour_ms);
  });

  it('reports how long an outage took, and how long the device was up before', async () => {
    const { all } = await play([
      { up_ms: 5_000, error: away },
      { error: away },
      { up_ms: 7_000, error: away },
    ]);
    expect(all).toMatchObject([
      { state: 'starting' },
      { state: 'up' },
      { state: 'down', reason: 'away', up_ms: 5_000, error: away },
      { state: 'down' },
      { state: 'up', down_ms: 3_000 },
      { state: 'down', up_ms: 7_000 },
      { state: 'stopped' },
    ]);
    expect(all[1]).not.toHaveProperty('down_ms');
    expect(all[3]).not.toHaveProperty('up_ms');
  });

  it('gives the reason and the pause of an expected outage, but not for a rejection', async () => {
    const expected = () => ({ reason: 'rebooting', retry_ms: 2_500 });
    const { all, pauses } = await play([{ error: away }, { error: rejection }], { expected });
    expect(pauses).toEqual([2_500, 2 * hour_ms]);
    expect(all[1]).toMatchObject({ state: 'down', reason: 'rebooting' });
  });

  it('treats a run that ends without a signal, or throws before its first await, as lost', async () => {
    const stopping = new AbortController();
    const reasons: string[] = [];
    let attempts = 0;
    await serveDevice({
      signal: stopping.signal,
      timing: fakeTiming().timing,
      run: () => {
        attempts += 1;
        if (attempts === 1) return Promise.resolve();
        throw new TypeError('undefined is not a function');
      },
      onState: (state) => {
        if ('reason' in state) reasons.push(state.reason);
        if (reasons.length === 2) stopping.abort();
      },
    });
    expect(reasons).toEqual([texts.ended_early, 'undefined is not a function']);
  });

  it('ends with what onFailure throws', async () => {
    const onFailure = async (): Promise<void> => {
      throw new RangeError('refused three times');
    };
    await expect(play([{ error: away }], { onFailure })).rejects.toThrow('refused three times');
  });

  it('reports an answer once for each connection, and none that comes after its end', async () => {
    const late: (() => void)[] = [];
    const stopping = new AbortController();
    const states: string[] = [];
    await serveDevice({
      signal: stopping.signal,
      timing: fakeTiming().timing,
      run: async (_signal, onUp) => {
        for (const answer of late) answer();
        late.push(onUp);
        onUp();
        onUp();
        if (late.length === 2) stopping.abort();
        throw away;
      },
      onState: ({ state }) => states.push(state),
    });
    expect(states).toEqual(['starting', 'up', 'down', 'up', 'stopped']);
  });
});

describe('serveDevice when its signal aborts', () => {
  /** Starts a session on the machine's clock whose first run does this. */
  function start(run: DeviceSession['run'], signal = new AbortController()) {
    const states: string[] = [];
    const done = serveDevice({
      signal: signal.signal,
      run,
      onState: ({ state }) => states.push(state),
    });
    return { signal, states, done };
  }

  it('does nothing when that was before the start', async () => {
    const stopping = new AbortController();
    stopping.abort();
    const { states, done } = start(() => Promise.reject(new Error('must not run')), stopping);
    await done;
    expect(states).toEqual(['starting', 'stopped']);
  });

  it.each([
    { when: 'connecting', isUp: false, states: ['starting', 'stopped'] },
    { when: 'serving', isUp: true, states: ['starting', 'up', 'stopped'] },
  ])('ends the run while it is $when, and waits for its end', async ({ isUp, states }) => {
    let isClosed = false;
    const session = start(async (signal, onUp) => {
      if (isUp) onUp();
      await aborted(signal);
      await Promise.resolve();
      isClosed = true;
      throw new Error('closed');
    });
    session.signal.abort();
    await session.done;
    expect(isClosed).toBe(true);
    expect(session.states).toEqual(states);
  });

  it.each([
    { when: 'the pause after a loss', error: away, states: ['starting', 'down', 'stopped'] },
    { when: 'the pause after a rejection', error: rejection, states: ['starting', 'rejected', 'stopped'] },
  ])('ends $when', async ({ error, states }) => {
    const session = start(() => Promise.reject(error));
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    session.signal.abort();
    await session.done;
    expect(session.states).toEqual(states);
  });

  it('leaves no listener on it, and aborts the own signal of every run', async () => {
    const runs: AbortSignal[] = [];
    const stopping = new AbortController();
    await serveDevice({
      signal: stopping.signal,
      timing: fakeTiming().timing,
      run: async (signal) => {
        runs.push(signal);
        if (runs.length === 20) stopping.abort();
        throw away;
      },
      onState: () => undefined,
    });
    expect(new Set(runs).size).toBe(20);
    expect(runs.every((signal) => signal.aborted)).toBe(true);
    expect(getEventListeners(stopping.signal, 'abort')).toEqual([]);
  });
});
