/** What the clock of an autopilot shows: a restart, two clocks that go on by turns, or nothing. */
import { describe, expect, it } from 'vitest';
import { BootClock } from '../../../../../drivers/mavlink/reports/boot-clock.ts';
import { SameStart } from '../../../../../drivers/mavlink/vehicles/vehicle.ts';
import type { Contact } from '../../../../../drivers/mavlink/vehicles/contact.ts';
import { Burst } from '../../../../../drivers/mavlink/reports/own-heartbeats.ts';

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

function contactOf(booted_at_ms: number, isPresumed: boolean): Contact {
  const about: Partial<Contact> = { boots: 0, booted_at_ms, isPresumed };
  return about as Contact;
}

it.for([
  { who: 'the vehicle', booted_at_ms: 51_000, isPresumed: true, isOver: false },
  { who: 'a vehicle that started later', booted_at_ms: 60_000, isPresumed: true, isOver: true },
  { who: 'a vehicle that started earlier', booted_at_ms: 40_000, isPresumed: true, isOver: true },
  { who: 'a faster link of the vehicle', booted_at_ms: 40_000, isPresumed: false, isOver: false },
])(
  'What was begun before a silence goes on only with the vehicle that began it: $who',
  ({ booted_at_ms, isPresumed, isOver }) => {
    const start = new SameStart([contactOf(50_000, false)], 70_000);
    expect(start.isOver([contactOf(booted_at_ms, isPresumed)])).toBe(isOver);
  },
);

it('A burst is so many times within the window, and goes on while they keep coming', () => {
  const burst = new Burst(3, 1_000);
  expect([0, 400, 900, 1_300, 2_301].map((ms) => burst.note(ms))).toEqual([false, false, true, true, false]);
});

it('A burst of a million costs no more for the last time than for the first', () => {
  const burst = new Burst(8, 5_000);
  let noticed = 0;
  for (let n = 0; n < 1_000_000; n += 1) if (burst.note(n / 1_000)) noticed += 1;
  expect(noticed).toBe(1_000_000 - 7);
});
