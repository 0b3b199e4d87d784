/** What the clock of an autopilot shows: a restart, two clocks that go on by turns, or nothing. */
import { describe, expect, it } from 'vitest';
import { BootClock } from '../../../../../drivers/mavlink/reports/boot-clock.ts';

const still = { roll: 0, pitch: 0, yaw: 0, rollspeed: 0, pitchspeed: 0, yawspeed: 0 };
const there = { lat: 0, lon: 0, alt: 0, relative_alt: 0, vx: 0, vy: 0, vz: 0, hdg: 0 };
const began_ms = 1e6;
type Uptime = (ms: number) => number;

/** A minute with four attitudes and one position a second, each after `ms` and with the clock that its function returns. */
function minute(clocks: { readonly attitude: Uptime; readonly position: Uptime }, seconds = 60) {
  const clock = new BootClock();
  let restarts = 0;
  for (let ms = 0; ms < seconds * 1_000; ms += 250) {
    const at_ms = began_ms + ms;
    const attitude = { time_boot_ms: clocks.attitude(ms), ...still };
    if (clock.receive({ name: 'ATTITUDE', fields: attitude }, at_ms)) restarts += 1;
    if (ms % 1_000 !== 0) continue;
    const position = { time_boot_ms: clocks.position(ms), ...there };
    if (clock.receive({ name: 'GLOBAL_POSITION_INT', fields: position }, at_ms)) restarts += 1;
  }
  return { clock, restarts, isTwofold: clock.twofold_ms > 0 };
}

const steady: Uptime = (ms) => 500_000 + ms;
/** iNav and Betaflight (src/main/telemetry/mavlink.c until 2025), in 32 bits. */
const micros: Uptime = (ms) => ((4_290_000 + ms) * 1_000) % 2 ** 32;
const restarted: Uptime = (ms) => (ms < 30_000 ? steady(ms) : ms - 20_000);
const byTurns =
  (other_ms: number): Uptime =>
  (ms) =>
    steady(ms) + (ms % 500 === 0 ? 0 : other_ms);

describe('The clock of an autopilot', () => {
  it.each([
    { what: 'goes on', attitude: steady, position: steady, restarts: 0, isTwofold: false },
    {
      what: 'counts microseconds in one message',
      attitude: steady,
      position: micros,
      restarts: 0,
      isTwofold: false,
    },
    { what: 'counts microseconds', attitude: micros, position: micros, restarts: 0, isTwofold: false },
    { what: 'restarts', attitude: restarted, position: restarted, restarts: 1, isTwofold: false },
    {
      what: 'restarts, and counts microseconds in one message',
      attitude: restarted,
      position: micros,
      restarts: 1,
      isTwofold: false,
    },
    {
      what: 'goes on with another one that runs longer, strictly by turns',
      attitude: byTurns(100_000),
      position: steady,
      restarts: 0,
      isTwofold: true,
    },
    {
      what: 'comes over a radio that is 3 s late too',
      attitude: byTurns(-3_000),
      position: steady,
      restarts: 1,
      isTwofold: false,
    },
    {
      what: 'is that of two by turns',
      attitude: byTurns(-100_000),
      position: steady,
      restarts: 1,
      isTwofold: true,
    },
    {
      what: 'is that of two by turns in each message',
      attitude: byTurns(100_000),
      position: steady,
      restarts: 0,
      isTwofold: true,
    },
  ])('that $what', ({ attitude, position, restarts, isTwofold }) => {
    const found = minute({ attitude, position });
    expect([found.restarts, found.isTwofold]).toEqual([restarts, isTwofold]);
  });

  it('shows a restart also in a kind of message that it has not sent before', () => {
    const { clock } = minute({ attitude: steady, position: steady });
    const system = { time_unix_usec: 0, time_boot_ms: 1_000 };
    expect(clock.receive({ name: 'SYSTEM_TIME', fields: system }, began_ms + 60_000)).toBe(true);
  });

  it('that restarts again and again shows each restart, and is one', () => {
    const found = minute({ attitude: (ms) => ms % 5_000, position: (ms) => ms % 5_000 });
    expect([found.restarts, found.isTwofold]).toEqual([11, false]);
  });

  it('is the same over two links, whatever unit one message has, and another one after a restart', () => {
    const [here, there_too] = [1, 2].map(() => minute({ attitude: steady, position: micros }).clock);
    const other = minute({ attitude: restarted, position: micros }).clock;
    expect([here, there_too].every(Boolean) && here?.hasSameStart(there_too as BootClock)).toBe(true);
    expect(here?.hasSameStart(other)).toBe(false);
    expect(here?.hasSameStart(new BootClock())).toBeUndefined();
  });
});
