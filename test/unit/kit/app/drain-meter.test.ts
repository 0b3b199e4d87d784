/** How fast the backlog drains, and how long it will take. */
import { beforeEach, expect, it } from 'vitest';
import { backlog_min, DrainMeter, sample_every_ms, waitReason } from '../../../../src/kit/app/drain-meter.ts';
import { texts } from '../../../../src/kit/app/texts.ts';
import { reasonOf } from '../../../../src/mqtt/codes.ts';

const lines: [object, string][] = [];
const kit: { at_ms: number; waiting: number; connected: boolean; reason?: string } = {
  at_ms: 0,
  waiting: 0,
  connected: false,
};
let meter: DrainMeter;
const note = (facts: object, sentence: string): void => void lines.push([facts, sentence]);

beforeEach(() => {
  lines.length = 0;
  Object.assign(kit, { at_ms: 0, waiting: 0, connected: false, reason: undefined });
  meter = new DrainMeter({
    now_ms: () => kit.at_ms,
    waiting: () => kit.waiting,
    isConnected: () => kit.connected,
    waitReason: () => kit.reason,
    log: { info: note, warn: note },
  });
});

/** So many seconds, in each of which `per_s` messages leave. */
function run(seconds: number, per_s: number): void {
  for (let s = 0; s < seconds; s += 1) {
    kit.at_ms += sample_every_ms;
    kit.waiting = Math.max(0, kit.waiting - per_s);
    meter.sample();
  }
}

it('reports nothing while the kit is offline, or while little waits', () => {
  kit.waiting = 10_000;
  run(5, 0);
  expect(meter.report()).toBeNull();
  kit.connected = true;
  kit.waiting = backlog_min - 1;
  run(5, 0);
  expect(meter.report()).toBeNull();
  expect(lines).toEqual([]);
});

it('reports what is left, the rate of the last half minute, and the time that it takes', () => {
  kit.waiting = 100_000;
  run(1, 0);
  kit.connected = true;
  run(1, 0);
  expect(meter.report()).toEqual({ from: 100_000, left: 100_000, per_s: 0, left_s: null, waits: null });
  run(40, 1_000);
  expect(meter.report()).toEqual({
    from: 100_000,
    left: 60_000,
    per_s: 1_000,
    left_s: 60,
    waits: null,
  });
  run(40, 100);
  expect(meter.report()).toMatchObject({ left: 56_000, per_s: 100, left_s: 560 });
});

it('reports no time while more comes in than leaves', () => {
  Object.assign(kit, { waiting: 1_000, connected: true });
  run(10, -50);
  expect(meter.report()).toEqual({ from: 1_500, left: 1_500, per_s: 0, left_s: null, waits: null });
});

it('logs once a minute while it lasts, and its end', () => {
  Object.assign(kit, { waiting: 130_000, connected: true });
  run(200, 1_000);
  expect(lines.map(([, sentence]) => sentence)).toEqual([
    'backlog draining',
    'backlog draining',
    'backlog drained',
  ]);
  expect(lines[0]?.[0]).toEqual({ from: 129_000, left: 69_000, per_s: 1_000, left_s: 69 });
  expect(lines[2]?.[0]).toEqual({ messages: 129_000, took_s: 129 });
});

it('logs why nothing leaves once and when that changes, and never that it drains', () => {
  Object.assign(kit, { waiting: 2_000, connected: true, reason: texts.no_subscriber('feed') });
  run(200, 0);
  expect(lines).toEqual([[{ left: 2_000, reason: kit.reason }, texts.backlog_waits]]);
  expect(meter.report()).toMatchObject({ per_s: 0, waits: kit.reason });
  kit.reason = texts.waits_for_cloud;
  run(120, 0);
  expect(lines.slice(1)).toEqual([[{ left: 2_000, reason: texts.waits_for_cloud }, texts.backlog_waits]]);
  run(70, 10);
  expect(lines.slice(2).map(([, sentence]) => sentence)).toEqual([texts.backlog_draining]);
  expect(meter.report()?.waits).toBeNull();
});

it('claims no reason that is not known, and no draining while the backlog grows', () => {
  Object.assign(kit, { waiting: 1_000, connected: true });
  run(62, -50);
  expect(lines.map(([, sentence]) => sentence)).toEqual([texts.backlog_not_shrinking]);
});

it.for([
  ['nobody is subscribed', { unheard: ['feed'] }, texts.no_subscriber('feed')],
  [
    'the broker refuses it',
    { refused: true },
    texts.kind_refused('feed', 'not authorised', reasonOf(0x87).remedy),
  ],
  ['the broker cannot take it', { problems: ['broker supports QoS 0 only'] }, 'broker supports QoS 0 only'],
  ['the cloud acknowledges nothing', { to: 'cloud', silent_ms: 60_000 }, texts.waits_for_cloud],
  ['the cloud acknowledges', { to: 'cloud', silent_ms: 1_000 }, undefined],
  ['no cloud has to', { silent_ms: Infinity }, undefined],
] as const)('where %s the reason is %j: %s', ([, facts, reason]) => {
  const {
    unheard = [],
    refused = false,
    problems = [],
    to = 'broker',
    silent_ms = 0,
  } = {
    unheard: undefined,
    refused: undefined,
    problems: undefined,
    to: undefined,
    silent_ms: undefined,
    ...facts,
  };
  const dispatch = {
    withoutSubscribers: () => unheard,
    refusedKinds: () => (refused ? [{ kind: 'feed', code: 0x87, reason: 'not authorised' }] : []),
    delivery: { cloud_acks: to === 'cloud', delivered_to: to } as const,
  };
  expect(waitReason(dispatch, problems, silent_ms)).toBe(reason);
});

it('begins again after a loss of the connection, without a line', () => {
  Object.assign(kit, { waiting: 5_000, connected: true });
  run(2, 100);
  kit.connected = false;
  run(2, 0);
  expect(meter.report()).toBeNull();
  kit.connected = true;
  run(1, 0);
  expect(meter.report()).toMatchObject({ from: 4_800, left: 4_800 });
  expect(lines).toEqual([]);
});
