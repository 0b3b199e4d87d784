/** Stories that once broke a promise, told with all their near relations. */
import '../../sim/world/globals.ts';
import { expect, test } from 'vitest';
import type { Action } from '../../sim/action.ts';
import { play } from '../../sim/play.ts';
import type { Setting } from '../../sim/scene.ts';

const setting: Setting = {
  duration_ms: 40_000,
  assets: 2,
  feed_every_ms: 0,
  event_every_ms: 0,
  latency_ms: 700,
  kit: {
    ack: 'auto',
    protocol: '5',
    packet_ms: 0,
    window_messages: 16,
    rows_max: 1_000_000,
    bytes_max: 64 * 1024 * 1024,
  },
  service_protocol: 'auto',
  isReordering: false,
  hasReserve: false,
  isSynced: true,
};

const nothing = { ms: 0, n: 0, how: '' };
/** The broker forgets its sessions and what it had retained. */
const forgets: Action = { ...nothing, at_ms: 15_000, kind: 'broker_kill', ms: 100, how: 'loses' };

async function brokenBy(seconds: readonly Action[]): Promise<readonly string[]> {
  const found = new Set<string>();
  for (const second of seconds) {
    const { violations } = await play({ seed: 'near', setting, actions: [forgets, second] });
    for (const violation of violations) found.add(`${second.kind} at ${second.at_ms}: ${violation}`);
  }
  return [...found];
}

function everyQuarter(from_ms: number, to_ms: number, action: Omit<Action, 'at_ms'>): readonly Action[] {
  const count = Math.floor((to_ms - from_ms) / 250);
  return Array.from({ length: count }, (_, index) => ({ ...action, at_ms: from_ms + index * 250 }));
}

test('a broker that lost its retained messages gets them again, whenever the next connection breaks', async () => {
  const resets = everyQuarter(15_500, 22_000, { ...nothing, kind: 'reset', how: 'kit' });
  expect(await brokenBy(resets)).toEqual([]);
});

test('a broker that lost its retained messages gets them again, whenever the kit is killed meanwhile', async () => {
  const kills = everyQuarter(15_500, 22_000, { ...nothing, kind: 'kill', ms: 300 });
  expect(await brokenBy(kills)).toEqual([]);
});

test('alarms are confirmed also when the cloud made the kit begin an epoch far above its own', async () => {
  const lie: Action = { ...nothing, at_ms: 3_400, kind: 'lie', n: 68_264, how: 'unknown epoch' };
  const busy: Setting = { ...setting, duration_ms: 12_000, event_every_ms: 330, latency_ms: 3 };
  const { violations } = await play({ seed: 'epoch', setting: busy, actions: [lie] });
  expect(violations).toEqual([]);
});

/** Seed 38569640: the shorter hang must not hide that the longer one still holds up the disk when the kit stops. */
test('a stop while the disk hangs loses nothing without a reason, also when two hangs overlap', async () => {
  const actions: readonly Action[] = [
    { ...nothing, at_ms: 1_900, kind: 'disk_hang', ms: 33_000 },
    { ...nothing, at_ms: 15_000, kind: 'disk_hang', ms: 900 },
    { ...nothing, at_ms: 17_000, kind: 'stop', ms: 700 },
  ];
  const busy: Setting = { ...setting, duration_ms: 40_000, feed_every_ms: 1_500, event_every_ms: 3_000 };
  const offline: Action = { ...nothing, at_ms: 11_000, kind: 'broker_kill', ms: 8_000, how: 'loses' };
  const { violations } = await play({ seed: '38569640', setting: busy, actions: [offline, ...actions] });
  expect(violations).toEqual([]);
});

/** As after a failed fsync: the log has the commit, and is read when the file is opened again. */
test('the books balance and nothing is stored twice though the disk gives errors for what it has carried out', async () => {
  const unsure = [3_000, 9_000, 15_000, 21_000].map((at_ms, index): Action => ({
    ...nothing,
    at_ms,
    kind: 'disk_unsure',
    ms: 300 + 1_200 * index,
  }));
  const others: readonly Action[] = [
    { ...nothing, at_ms: 9_300, kind: 'reset', how: 'kit' },
    { ...nothing, at_ms: 15_500, kind: 'down', ms: 1_500, how: 'kit' },
    { ...nothing, at_ms: 22_000, kind: 'command', ms: 300, how: 'move' },
    { ...nothing, at_ms: 24_500, kind: 'kill', ms: 400 },
  ];
  const busy: Setting = { ...setting, latency_ms: 20, feed_every_ms: 300, event_every_ms: 700 };
  const { violations } = await play({ seed: 'unsure', setting: busy, actions: [...unsure, ...others] });
  expect(violations).toEqual([]);
});

/** A gateway that has no processor to spare: no stall is long, and none is far from the next. */
test('a disk that hangs is noticed by a kit that stalls again and again', async () => {
  const stalls = Array.from({ length: 13 }, (_, index): Action => {
    return { ...nothing, at_ms: 3_000 + index * 2_000, kind: 'kit_freeze', ms: 700 };
  });
  const others: readonly Action[] = [
    { ...nothing, at_ms: 1_000, kind: 'down', ms: 30_000, how: 'kit' },
    { ...nothing, at_ms: 2_000, kind: 'disk_hang', ms: 28_000 },
    { ...nothing, at_ms: 2_300, kind: 'burst', n: 2_000, how: '0' },
  ];
  const near: Setting = { ...setting, latency_ms: 20 };
  const played = await play({ seed: 'stalls', setting: near, actions: [...stalls, ...others] });
  expect(played.violations).toEqual([]);
  expect(played.trace).toContain('disk write failed');
});
