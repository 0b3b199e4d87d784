/** The pacing of feeds. */
import { array, assert, integer, property } from 'fast-check';
import { expect, it, onTestFinished, vi } from 'vitest';
import { type FeedRates, Pacer } from '../../../../src/kit/hub/rate.ts';
import { useFakeTime } from '../../../support/fake-time.ts';

useFakeTime();

function start(rates: FeedRates) {
  const stopping = new AbortController();
  onTestFinished(() => stopping.abort());
  const pacer = new Pacer(rates, () => performance.now(), stopping.signal);
  const sent: { readonly value: number; readonly at_ms: number }[] = [];
  const start_ms = performance.now();
  const send = (value: number) => () => sent.push({ value, at_ms: performance.now() - start_ms });
  return { pacer, sent, send, stop: () => stopping.abort() };
}

it('sends the first message at once and the newest of the others when its turn comes', () => {
  const { pacer, sent, send } = start({ default: 5 });
  const stream = pacer.open('gps');
  expect(stream.offer(send(1))).toBe(false);
  expect(stream.offer(send(2))).toBe(false);
  expect(stream.offer(send(3))).toBe(true);
  vi.advanceTimersByTime(1_000);
  expect(sent).toEqual([
    { value: 1, at_ms: 0 },
    { value: 3, at_ms: 200 },
  ]);
});

it('uses one timer for all streams, and none while nothing is held back', () => {
  const { pacer, send } = start({ default: 5, gps: 1 });
  const streams = Array.from({ length: 100 }, (_, index) => pacer.open(index % 2 ? 'gps' : 'attitude'));
  for (const stream of streams) stream.offer(send(0));
  expect(vi.getTimerCount()).toBe(0);
  for (const stream of streams) stream.offer(send(1));
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(1_100);
  expect(vi.getTimerCount()).toBe(0);
});

it('gives the turns of slow streams together, and those of a dense one to the millisecond', () => {
  const { pacer, sent, send } = start({ default: 2, attitude: 20 });
  for (let index = 0; index < 7; index += 1) {
    const stream = pacer.open('gps');
    stream.offer(send(index));
    stream.offer(send(100 + index));
    vi.advanceTimersByTime(7);
  }
  const dense = pacer.open('attitude');
  dense.offer(send(1_000));
  dense.offer(send(1_001));
  vi.advanceTimersByTime(600);
  const slow = sent.filter(({ value }) => value >= 100 && value < 1_000).map(({ at_ms }) => at_ms);
  expect(slow).toHaveLength(7);
  expect(new Set(slow).size).toBeLessThanOrEqual(2);
  for (const [index, at_ms] of slow.toSorted((a, b) => a - b).entries()) {
    expect(at_ms).toBeGreaterThanOrEqual(500 + 7 * index);
    expect(at_ms).toBeLessThan(500 + 7 * index + 50);
  }
  expect(sent.find(({ value }) => value === 1_001)?.at_ms).toBe(49 + 50);
});

it('never exceeds its rate by more than one message and always sends the newest', () => {
  const gaps = array(integer({ min: 0, max: 400 }), { minLength: 1, maxLength: 60 });
  assert(
    property(gaps, integer({ min: 1, max: 20 }), (pauses_ms, rate_hz) => {
      const { pacer, sent, send, stop } = start({ default: rate_hz });
      const stream = pacer.open('gps');
      let elapsed_ms = 0;
      for (const [index, pause_ms] of pauses_ms.entries()) {
        vi.advanceTimersByTime(pause_ms);
        elapsed_ms += pause_ms;
        stream.offer(send(index));
      }
      vi.advanceTimersByTime(2_000);
      stop();
      const while_offered = sent.filter((each) => each.at_ms <= elapsed_ms).length;
      expect(while_offered).toBeLessThanOrEqual((elapsed_ms * rate_hz) / 1000 + 2);
      expect(sent.at(-1)?.value).toBe(pauses_ms.length - 1);
      expect(sent.map((each) => each.value)).toEqual(
        [...new Set(sent.map((each) => each.value))].sort((a, b) => a - b),
      );
    }),
    { numRuns: 50 },
  );
});

it('sends every message of a stream that keeps its rate with a little jitter', () => {
  const { pacer, sent, send } = start({ default: 10 });
  const stream = pacer.open('gps');
  for (let index = 0; index < 100; index += 1) {
    stream.offer(send(index));
    vi.advanceTimersByTime(index % 2 ? 110 : 90);
  }
  vi.advanceTimersByTime(200);
  expect(sent).toHaveLength(100);
});

it('applies a new rate to what is held back already', () => {
  const { pacer, sent, send } = start({ default: 0.01 });
  const stream = pacer.open('gps');
  stream.offer(send(1));
  stream.offer(send(2));
  pacer.setRates({ default: 10 });
  vi.advanceTimersByTime(100);
  expect(sent.map((each) => each.value)).toEqual([1, 2]);
});

it('sends nothing of a feed whose rate is 0, and counts its messages as superseded', () => {
  const { pacer, sent, send } = start({ default: 5, attitude: 0 });
  expect(pacer.open('attitude').offer(send(1))).toBe(true);
  vi.advanceTimersByTime(10_000);
  expect(sent).toEqual([]);
});

it('sends withheld messages when the connector stops', () => {
  const { pacer, sent, send, stop } = start({ default: 1 });
  const stream = pacer.open('gps');
  stream.offer(send(1));
  stream.offer(send(2));
  stop();
  expect(sent.map((each) => each.value)).toEqual([1, 2]);
});

it('discards withheld messages when the stream is closed', () => {
  const { pacer, sent, send } = start({ default: 1 });
  const stream = pacer.open('gps');
  stream.offer(send(1));
  stream.offer(send(2));
  stream.close();
  vi.advanceTimersByTime(5_000);
  expect(sent.map((each) => each.value)).toEqual([1]);
});

it('does not wait for a turn of the slower rate when nothing was held back as the rate rose', () => {
  const { pacer, sent, send } = start({ default: 0.001 });
  const stream = pacer.open('gps');
  stream.offer(send(1));
  pacer.setRates({ default: 10 });
  stream.offer(send(2));
  vi.advanceTimersByTime(100);
  expect(sent.map(({ value }) => value)).toEqual([1, 2]);
});
