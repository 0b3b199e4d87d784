/** What a message of a driver passes before the outbox: the schema of its feed, then its rate. */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { z } from 'zod';
import { createFeedGate } from '../../../../src/kit/hub/feed-gate.ts';
import { type FeedRates, Pacer } from '../../../../src/kit/hub/rate.ts';
import { texts } from '../../../../src/kit/hub/texts.ts';
import type { Appender } from '../../../../src/kit/outbox/api.ts';
import { useFakeTime } from '../../../support/fake-time.ts';
import { recordingLog } from '../../../support/recording-log.ts';
import { recordingOutbox } from '../../../support/recording-outbox.ts';

useFakeTime();

const asset_id = '3f0c1f6e-52a4-4c0e-9d6b-1f2a7c9e4b10';
const feeds = {
  gps: z.strictObject({ lat: z.number(), note: z.string().max(10).optional() }),
  motion: z.strictObject({ state: z.boolean() }),
  raw: z.unknown(),
};

function lab(rates: FeedRates = { default: 2 }, outbox: Appender = recordingOutbox()) {
  const stopping = new AbortController();
  onTestFinished(() => stopping.abort());
  const log = recordingLog();
  const broken: unknown[] = [];
  const start_ms = performance.now();
  const now_ms = () => performance.now() - start_ms;
  const gate = createFeedGate({
    asset_id,
    feeds,
    outbox,
    clock: { stamp: () => ({ time_ms: now_ms(), mono_ms: now_ms(), synced: true }), boot_id: 'boot' },
    pacer: new Pacer(rates, now_ms, stopping.signal),
    broken: (error) => broken.push(error),
  });
  const publish = (feed: string, message: unknown) => gate.publish(feed, message, log);
  return { gate, publish, log, broken };
}

describe('The feed gate', () => {
  it('passes a message that fits its schema, on the channel and lane of its feed', () => {
    const outbox = recordingOutbox();
    const { publish } = lab(undefined, outbox);
    expect(publish('gps', { lat: 52 })).toBe(true);
    expect(outbox.drafts).toMatchObject([
      { channel: `feed/${asset_id}/gps`, lane: 'feed', data: { lat: 52 }, stamp: { mono_ms: 0 } },
    ]);
  });

  it('drops a message that breaks its schema, counts each and logs the first with its fault', () => {
    const outbox = recordingOutbox();
    const { gate, publish, log } = lab(undefined, outbox);
    expect([publish('gps', { lat: 'north' }), publish('gps', {}), publish('gps', null)]).toEqual([
      false,
      false,
      false,
    ]);
    expect(outbox.drafts).toEqual([]);
    expect(log.lines).toMatchObject([
      {
        level: 'error',
        sentence: texts.feed_invalid,
        facts: { feed: 'gps', reason: expect.stringContaining('lat') as string },
      },
    ]);
    expect(gate.view()).toMatchObject({ gps: { messages: 0, invalid: 3 } });
  });

  it('drops messages of feeds that the driver did not declare, and keeps no counter of them', () => {
    const { gate, publish, log } = lab();
    for (const feed of ['weather', 'toString', '__proto__']) expect(publish(feed, { lat: 1 })).toBe(false);
    expect(log.at('error')).toEqual([texts.feed_undeclared]);
    expect(gate.view()).toEqual({});
  });

  it('holds a feed to its rate: the newest message leaves when its turn comes, and the replaced ones are counted', () => {
    const outbox = recordingOutbox();
    const { gate, publish } = lab({ default: 2 }, outbox);
    for (const lat of [1, 2, 3, 4]) expect(publish('gps', { lat })).toBe(true);
    expect(outbox.on(`feed/${asset_id}/gps`)).toEqual([{ lat: 1 }]);
    vi.advanceTimersByTime(1_000);
    expect(outbox.on(`feed/${asset_id}/gps`)).toEqual([{ lat: 1 }, { lat: 4 }]);
    expect(gate.view()).toMatchObject({ gps: { messages: 2, coalesced: 2, invalid: 0 } });
  });

  it('stamps a message when it was observed, not when its turn comes', () => {
    const outbox = recordingOutbox();
    const { publish } = lab({ default: 2 }, outbox);
    publish('gps', { lat: 1 });
    vi.advanceTimersByTime(100);
    publish('gps', { lat: 2 });
    vi.advanceTimersByTime(1_000);
    expect(outbox.drafts.map(({ stamp }) => stamp?.mono_ms)).toEqual([0, 100]);
  });

  it('passes every alarm immediately, as an event', () => {
    const outbox = recordingOutbox();
    const { publish } = lab({ default: 0 }, outbox);
    for (const state of [true, false, true]) publish('motion', { state });
    expect(outbox.drafts).toMatchObject([
      { channel: `event/${asset_id}/motion`, lane: 'alarm', data: { state: true } },
      { data: { state: false } },
      { data: { state: true } },
    ]);
  });

  it('reports the age of the newest good message of each feed', () => {
    const { gate, publish } = lab();
    publish('gps', { lat: 1 });
    vi.advanceTimersByTime(2_340);
    publish('gps', { lat: 'wrong' });
    expect(gate.view()['gps']?.age_s).toBe(2.3);
  });

  it.each([
    ['a list', [1]],
    ['a text', 'hello'],
    ['nothing', null],
  ])('refuses %s, which is no object, also where the schema allows it', (_, message) => {
    const { gate, publish } = lab();
    expect(publish('raw', message)).toBe(false);
    expect(gate.view()).toMatchObject({ raw: { invalid: 1 } });
  });

  it('takes a value that JSON cannot carry for a bad message, not for a broken outbox', () => {
    const { gate, publish, broken } = lab();
    publish('raw', { count: 1n });
    expect(broken).toEqual([]);
    expect(gate.view()).toMatchObject({ raw: { messages: 0, invalid: 1 } });
  });

  it('reports an outbox that contradicts itself, and blames no message for it', () => {
    const fault = new Error('out of order');
    const outbox: Appender = {
      append: () => {
        throw fault;
      },
    };
    const { gate, publish, broken } = lab(undefined, outbox);
    expect(publish('gps', { lat: 1 })).toBe(true);
    expect(broken).toEqual([fault]);
    expect(gate.view()).toMatchObject({ gps: { messages: 0, invalid: 0 } });
  });

  it('forgets what it held back when it is closed', () => {
    const outbox = recordingOutbox();
    const { gate, publish } = lab({ default: 1 }, outbox);
    publish('gps', { lat: 1 });
    publish('gps', { lat: 2 });
    gate.close();
    vi.advanceTimersByTime(5_000);
    expect(outbox.on(`feed/${asset_id}/gps`)).toEqual([{ lat: 1 }]);
  });
});
