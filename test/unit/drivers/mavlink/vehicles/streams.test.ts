/** Requests for messages: one at a time, again when messages stop, never against another station. */
import { describe, expect, it } from 'vitest';
import type { Autopilot } from '../../../../../drivers/mavlink/reports/kind.ts';
import {
  type StreamRequest,
  Streams,
  wantedMessages,
} from '../../../../../drivers/mavlink/vehicles/streams.ts';
import { contactOver, fakeLink, rates } from '../links/fake-link.ts';

/** Runs the requests every 100 ms; `answer` returns the autopilot's result; undefined: no answer. */
function run(
  autopilot: Autopilot,
  seconds: number,
  answer: (ask: StreamRequest, streams: Streams, now_ms: number) => number | undefined,
): (StreamRequest & { readonly at_ms: number })[] {
  const streams = new Streams(autopilot, rates, 0);
  const asks: (StreamRequest & { readonly at_ms: number })[] = [];
  for (let now_ms = 0; now_ms < seconds * 1_000; now_ms += 100) {
    const ask = streams.next(now_ms);
    if (!ask) continue;
    asks.push({ ...ask, at_ms: now_ms });
    const result = answer(ask, streams, now_ms);
    if (result !== undefined && ask.command !== 'data_streams') streams.acknowledged(ask.command, result);
  }
  return asks;
}

describe('Stream requests', () => {
  it('are sent once for each message, with a finite interval in microseconds', () => {
    const asks = run('ardupilot', 3, () => 0);
    const intervals = asks.flatMap((ask) => (ask.command === 511 ? [[ask.msgid, ask.interval_us]] : []));
    expect(new Map(intervals as [number, number][])).toEqual(
      new Map([
        [33, 500_000],
        [65, 4_000_000],
        [124, 1_000_000],
        [136, 4_000_000],
        [24, 1_000_000],
        [242, 5_000_000],
        [193, 1_000_000],
        [1, 1_000_000],
        [245, 1_000_000],
        [30, 250_000],
        [74, 500_000],
        [147, 2_000_000],
        [87, 1_000_000],
        [168, 4_000_000],
        [162, 4_000_000],
        [241, 4_000_000],
        [42, 1_000_000],
      ]),
    );
    expect(intervals).toHaveLength(17);
    expect(asks[0]).toMatchObject({ command: 512, msgid: 148, at_ms: 0 });
  });

  it('keep a minimum rate of what commands depend on, at low configured rates too', () => {
    const slow = wantedMessages('ardupilot', { ...rates, position_hz: 0.1, status_hz: 0.1 });
    const intervals = new Map(slow.map(({ name, interval_ms }) => [name, interval_ms]));
    expect(intervals.get('MISSION_CURRENT')).toBe(1_000);
    expect(intervals.get('EXTENDED_SYS_STATE')).toBe(1_000);
    expect(intervals.get('GLOBAL_POSITION_INT')).toBe(1_000);
    expect(intervals.get('SYS_STATUS')).toBe(2_000);
    expect(intervals.get('VFR_HUD')).toBe(10_000);
  });

  it('include only messages that the autopilot has', () => {
    const ids = (autopilot: Autopilot) => wantedMessages(autopilot, rates).map(({ msgid }) => msgid);
    expect(ids('px4')).toContain(230);
    expect(ids('px4')).not.toContain(193);
    expect(ids('ardupilot')).not.toContain(230);
  });

  it('are repeated after 5, 10, 30 and then 120 seconds while the message is missing', () => {
    const asks = run('px4', 200, () => 0).filter((ask) => ask.command === 511 && ask.msgid === 33);
    const pauses = asks
      .slice(1)
      .map(({ at_ms }, index) => Math.round((at_ms - (asks[index]?.at_ms ?? 0)) / 1_000));
    expect(pauses).toEqual([5, 10, 30, 120]);
  });

  it('are not repeated when the autopilot refuses them', () => {
    const asks = run('px4', 100, () => 4);
    expect(asks).toHaveLength(18);
  });

  it('are repeated when the autopilot rejects them temporarily', () => {
    const asks = run('ardupilot', 30, (ask) => (ask.command === 511 && ask.msgid === 242 ? 1 : 0));
    const home = asks.filter((ask) => ask.command === 511 && ask.msgid === 242);
    expect(home.length).toBeGreaterThanOrEqual(3);
  });

  it('raise the rate of a message that arrives more rarely than wanted, once: another station may lower it again', () => {
    const streams = new Streams('ardupilot', rates, 0);
    const again: number[] = [];
    for (let now_ms = 0; now_ms < 300_000; now_ms += 100) {
      if (now_ms % 1_000 === 0)
        for (const { name } of wantedMessages('ardupilot', rates)) streams.received(name, now_ms);
      const ask = streams.next(now_ms);
      if (ask?.command === 511) again.push(ask.msgid);
      if (ask && ask.command !== 'data_streams') streams.acknowledged(ask.command, 0);
    }
    // Position, attitude and VFR_HUD are wanted more often than once a second.
    expect(again.toSorted((a, b) => a - b)).toEqual([30, 33, 74]);
  });

  it('are not sent for messages that arrive faster', () => {
    const streams = new Streams('px4', rates, 0);
    const again: StreamRequest[] = [];
    for (let now_ms = 0; now_ms < 60_000; now_ms += 100) {
      for (const { name } of wantedMessages('px4', rates)) streams.received(name, now_ms);
      const ask = streams.next(now_ms);
      if (ask && ask.command !== 512) again.push(ask);
    }
    expect(again).toEqual([]);
  });

  it('use REQUEST_DATA_STREAM and the older request of the identity for an ArduPilot that supports neither 511 nor 512', () => {
    const asks = run('ardupilot', 60, () => 3);
    expect(asks[0]).toMatchObject({ command: 512, msgid: 148 });
    expect(asks[1]).toMatchObject({ command: 520 });
    const streams = asks.filter(({ command }) => command === 'data_streams');
    expect(streams.length).toBeGreaterThan(1);
    expect(streams[0]?.at_ms).toBeLessThan(2_000);
    expect(asks.filter(({ command }) => command === 511)).toHaveLength(1);
  });

  it('use REQUEST_DATA_STREAM for an ArduPilot that does not answer', () => {
    const asks = run('ardupilot', 30, () => undefined);
    expect(asks.some(({ command }) => command === 'data_streams')).toBe(true);
    expect(run('px4', 30, () => undefined).some(({ command }) => command === 'data_streams')).toBe(false);
  });

  it('are in flight one at a time, three tries a second apart', () => {
    const asks = run('px4', 5, (ask) => (ask.command === 512 ? 0 : undefined));
    const intervals = asks.filter(({ command }) => command === 511);
    expect(intervals.slice(0, 3).map(({ at_ms }) => at_ms)).toEqual([1_100, 2_100, 3_100]);
    expect(new Set(intervals.slice(0, 3).map((ask) => 'msgid' in ask && ask.msgid)).size).toBe(1);
  });

  it('include the identity each second until it is received: without it a vehicle has no key', () => {
    const asks = run('px4', 10, () => undefined).filter(({ command }) => command === 512 || command === 520);
    expect(asks.length).toBeGreaterThanOrEqual(8);
  });

  it('include the identity every 30 s, because a second vehicle would answer too', () => {
    const asks = run('px4', 95, (ask, streams, now_ms) => {
      if (ask.command === 512) streams.received('AUTOPILOT_VERSION', now_ms);
      return ask.command === 512 ? 0 : 4;
    });
    expect(asks.filter(({ command }) => command === 512).map(({ at_ms }) => at_ms)).toEqual([
      0, 30_000, 60_000, 90_000,
    ]);
  });

  it('include the list of flight modes only when it is needed, until it is received', () => {
    const streams = new Streams('ardupilot', rates, 0);
    const asked: number[] = [];
    const settle = (from_s: number, until_s: number): void => {
      for (let now_ms = from_s * 1_000; now_ms < until_s * 1_000; now_ms += 100) {
        const ask = streams.next(now_ms);
        for (const { name } of wantedMessages('ardupilot', rates)) streams.received(name, now_ms);
        if (ask?.command === 512 && ask.msgid === 435) asked.push(now_ms);
        if (ask?.command === 512) streams.acknowledged(512, 0);
      }
    };
    settle(0, 5);
    expect(asked).toEqual([]);
    streams.requestModes(26);
    streams.requestModes(26);
    settle(5, 400);
    expect(asked).toHaveLength(4);
    streams.restart(400_000);
    streams.requestModes(26);
    settle(400, 402);
    streams.received('AVAILABLE_MODES', 402_000);
    settle(402, 800);
    expect(asked).toHaveLength(5);
    streams.requestModes(27);
    settle(800, 802);
    expect(asked).toHaveLength(6);
  });

  it('include the identity at most every 5 s while a second vehicle is suspected', () => {
    const streams = new Streams('ardupilot', rates, 0);
    const asked: number[] = [];
    for (let now_ms = 0; now_ms < 20_000; now_ms += 100) {
      for (const { name } of wantedMessages('ardupilot', rates))
        if (name !== 'AUTOPILOT_VERSION') streams.received(name, now_ms);
      const ask = streams.next(now_ms);
      if (ask?.command === 512) {
        asked.push(now_ms);
        streams.received('AUTOPILOT_VERSION', now_ms);
        streams.acknowledged(512, 0);
      }
      if (now_ms >= 8_000) streams.recheckIdentity(now_ms);
    }
    expect(asked).toEqual([0, 8_100, 13_200, 18_300]);
  });
});

describe('The clock of an autopilot', () => {
  const contactAt = (boots_ms: readonly number[]): number => {
    const options = { passive: true, streams: rates };
    const contact = contactOver(fakeLink(), { options }, 0);
    const still = { roll: 0, pitch: 0, yaw: 0, rollspeed: 0, pitchspeed: 0, yawspeed: 0 };
    for (const [index, time_boot_ms] of boots_ms.entries())
      contact.receive({ name: 'ATTITUDE', fields: { time_boot_ms, ...still } }, 1e6 + 250 * index);
    return contact.boots;
  };

  it('wraps after 49.7 days without a restart', () => {
    expect(contactAt([2 ** 32 - 500, 2 ** 32 - 250, 0, 250])).toBe(0);
    expect(contactAt([500_000, 500_250, 0, 250])).toBe(1);
  });
});
