/** Asking for messages: one at a time, again when they stay away, never against another station. */
import { describe, expect, it } from 'vitest';
import type { Autopilot } from '../../../../drivers/mavlink/kind.ts';
import { type Ask, Streams, wantedMessages } from '../../../../drivers/mavlink/streams.ts';

const rates = { position_hz: 2, attitude_hz: 4, status_hz: 1 };

/** An autopilot that is asked every 100 ms. `answer` says what it answers; undefined: nothing. */
function play(
  autopilot: Autopilot,
  seconds: number,
  answer: (ask: Ask, streams: Streams, now_ms: number) => number | undefined,
): (Ask & { readonly at_ms: number })[] {
  const streams = new Streams(autopilot, rates, 0);
  const asks: (Ask & { readonly at_ms: number })[] = [];
  for (let now_ms = 0; now_ms < seconds * 1_000; now_ms += 100) {
    const ask = streams.next(now_ms);
    if (!ask) continue;
    asks.push({ ...ask, at_ms: now_ms });
    const result = answer(ask, streams, now_ms);
    if (result !== undefined && ask.command !== 'data_streams') streams.acknowledged(ask.command, result);
  }
  return asks;
}

describe('streams', () => {
  it('are asked for once each, with a finite interval in microseconds', () => {
    const asks = play('ardupilot', 3, () => 0);
    const intervals = asks.flatMap((ask) => (ask.command === 511 ? [[ask.msgid, ask.interval_us]] : []));
    expect(new Map(intervals as [number, number][])).toEqual(
      new Map([
        [33, 500_000],
        [24, 1_000_000],
        [242, 5_000_000],
        [193, 1_000_000],
        [1, 1_000_000],
        [245, 1_000_000],
        [30, 250_000],
        [74, 500_000],
        [147, 2_000_000],
        [87, 1_000_000],
      ]),
    );
    expect(intervals).toHaveLength(10);
    expect(asks[0]).toMatchObject({ command: 512, msgid: 148, at_ms: 0 });
  });

  it('are those that the autopilot has', () => {
    const ids = (autopilot: Autopilot) => wantedMessages(autopilot, rates).map(({ msgid }) => msgid);
    expect(ids('px4')).toContain(230);
    expect(ids('px4')).not.toContain(193);
    expect(ids('ardupilot')).not.toContain(230);
  });

  it('are asked for again after 5, 10, 30 and then 120 seconds when they do not come', () => {
    const asks = play('px4', 200, () => 0).filter((ask) => ask.command === 511 && ask.msgid === 33);
    const pauses = asks
      .slice(1)
      .map(({ at_ms }, index) => Math.round((at_ms - (asks[index]?.at_ms ?? 0)) / 1_000));
    expect(pauses).toEqual([5, 10, 30, 120]);
  });

  it('that the autopilot refuses are not asked for again', () => {
    const asks = play('px4', 100, () => 4);
    expect(asks).toHaveLength(11);
  });

  it('that the autopilot cannot send yet are asked for again', () => {
    const asks = play('ardupilot', 30, (ask) => (ask.command === 511 && ask.msgid === 242 ? 1 : 0));
    const home = asks.filter((ask) => ask.command === 511 && ask.msgid === 242);
    expect(home.length).toBeGreaterThanOrEqual(3);
  });

  it('that come at another rate than ours are left to the station that asked for them', () => {
    const everything = new Streams('ardupilot', rates, 0);
    const again: Ask[] = [];
    for (let now_ms = 0; now_ms < 60_000; now_ms += 1_000) {
      for (const { name } of wantedMessages('ardupilot', rates)) everything.heard(name, now_ms);
      const ask = everything.next(now_ms);
      if (ask && ask.command !== 512) again.push(ask);
    }
    expect(again).toEqual([]);
  });

  it('are asked for in the old way by an ArduPilot that answers nothing', () => {
    const asks = play('ardupilot', 30, () => undefined);
    expect(asks.some(({ command }) => command === 'data_streams')).toBe(true);
    expect(play('px4', 30, () => undefined).some(({ command }) => command === 'data_streams')).toBe(false);
  });

  it('are in flight one at a time, three tries a second apart', () => {
    const asks = play('px4', 4, () => undefined);
    expect(asks.map(({ at_ms }) => at_ms)).toEqual([0, 1_000, 2_000, 3_000]);
    expect(new Set(asks.slice(0, 3).map((ask) => ask.command !== 'data_streams' && ask.msgid)).size).toBe(1);
  });

  it('are asked for with an identity every 30 s, because a second vehicle would answer too', () => {
    const asks = play('px4', 95, (ask, streams, now_ms) => {
      if (ask.command === 512) streams.heard('AUTOPILOT_VERSION', now_ms);
      return ask.command === 512 ? 0 : 4;
    });
    expect(asks.filter(({ command }) => command === 512).map(({ at_ms }) => at_ms)).toEqual([
      0, 30_000, 60_000, 90_000,
    ]);
  });

  it('include the list of flight modes only when it is needed, until it comes', () => {
    const streams = new Streams('ardupilot', rates, 0);
    const asked: number[] = [];
    const settle = (from_s: number, until_s: number): void => {
      for (let now_ms = from_s * 1_000; now_ms < until_s * 1_000; now_ms += 100) {
        const ask = streams.next(now_ms);
        for (const { name } of wantedMessages('ardupilot', rates)) streams.heard(name, now_ms);
        if (ask?.command === 512 && ask.msgid === 435) asked.push(now_ms);
        if (ask?.command === 512) streams.acknowledged(512, 0);
      }
    };
    settle(0, 5);
    expect(asked).toEqual([]);
    streams.wantModes();
    streams.wantModes();
    settle(5, 400);
    expect(asked).toHaveLength(4);
    streams.restart(400_000);
    streams.wantModes();
    settle(400, 402);
    streams.heard('AVAILABLE_MODES', 402_000);
    settle(402, 800);
    expect(asked).toHaveLength(5);
  });

  it('begin with the identity again when there may be a second vehicle, every 5 s at most', () => {
    const streams = new Streams('ardupilot', rates, 0);
    const asked: number[] = [];
    for (let now_ms = 0; now_ms < 20_000; now_ms += 100) {
      for (const { name } of wantedMessages('ardupilot', rates))
        if (name !== 'AUTOPILOT_VERSION') streams.heard(name, now_ms);
      const ask = streams.next(now_ms);
      if (ask?.command === 512) {
        asked.push(now_ms);
        streams.heard('AUTOPILOT_VERSION', now_ms);
        streams.acknowledged(512, 0);
      }
      if (now_ms >= 8_000) streams.doubt(now_ms);
    }
    expect(asked).toEqual([0, 8_100, 13_200, 18_300]);
  });
});
