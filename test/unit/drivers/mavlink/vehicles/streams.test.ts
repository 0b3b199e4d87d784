/** Requests for messages: one at a time, again when messages stop, never against another station. */
import { describe, expect, it } from 'vitest';
import type { Autopilot } from '../../../../../drivers/mavlink/vehicles/kind.ts';
import {
  type StreamRequest,
  Streams,
  wantedMessages,
} from '../../../../../drivers/mavlink/vehicles/streams.ts';

const rates = { position_hz: 2, attitude_hz: 4, status_hz: 1 };

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
    expect(asks).toHaveLength(11);
  });

  it('are repeated when the autopilot rejects them temporarily', () => {
    const asks = run('ardupilot', 30, (ask) => (ask.command === 511 && ask.msgid === 242 ? 1 : 0));
    const home = asks.filter((ask) => ask.command === 511 && ask.msgid === 242);
    expect(home.length).toBeGreaterThanOrEqual(3);
  });

  it('are not sent for messages that arrive at the rate of another station', () => {
    const everything = new Streams('ardupilot', rates, 0);
    const again: StreamRequest[] = [];
    for (let now_ms = 0; now_ms < 60_000; now_ms += 1_000) {
      for (const { name } of wantedMessages('ardupilot', rates)) everything.received(name, now_ms);
      const ask = everything.next(now_ms);
      if (ask && ask.command !== 512) again.push(ask);
    }
    expect(again).toEqual([]);
  });

  it('use REQUEST_DATA_STREAM for an ArduPilot that does not answer', () => {
    const asks = run('ardupilot', 30, () => undefined);
    expect(asks.some(({ command }) => command === 'data_streams')).toBe(true);
    expect(run('px4', 30, () => undefined).some(({ command }) => command === 'data_streams')).toBe(false);
  });

  it('are in flight one at a time, three tries a second apart', () => {
    const asks = run('px4', 4, () => undefined);
    expect(asks.map(({ at_ms }) => at_ms)).toEqual([0, 1_000, 2_000, 3_000]);
    expect(new Set(asks.slice(0, 3).map((ask) => ask.command !== 'data_streams' && ask.msgid)).size).toBe(1);
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
    streams.requestModes();
    streams.requestModes();
    settle(5, 400);
    expect(asked).toHaveLength(4);
    streams.restart(400_000);
    streams.requestModes();
    settle(400, 402);
    streams.received('AVAILABLE_MODES', 402_000);
    settle(402, 800);
    expect(asked).toHaveLength(5);
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
