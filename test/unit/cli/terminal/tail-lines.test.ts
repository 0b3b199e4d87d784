/** What is published, at the width of a terminal. */
import { expect, it, test } from 'vitest';
import type { TailMessage } from '../../../../src/kit/local/api.ts';
import { TailLines } from '../../../../src/cli/terminal/tail-screen.ts';
import { widthOf } from '../../../../src/cli/terminal/width.ts';
import { texts } from '../../../../src/cli/texts.ts';
import { drone, messageOf, time } from '../../kit/local/fake-daemon.ts';
import { localTime } from '../../../../src/platform/local-time.ts';

const plain = (_: string, text: string): string => text;
const at = localTime(time);

function lineOf(changes: Partial<TailMessage>, columns?: number): string | undefined {
  return new TailLines(plain).line(messageOf(changes), columns);
}

const announcement = {
  id: drone.id,
  asset_key: drone.key,
  name: drone.name,
  type: 'drone',
  vendor: 'ArduPilot',
  model: 'Quadrotor',
  firmware: '4.5.7',
  protocol: 'mavlink',
  status: 'offline',
  status_reason: 'no heartbeat for 5 s',
  feeds: ['gps', 'battery'],
};

const kit = { asset: null, channel: 'telemetry', feed: 'telemetry' };

test.each<[string, Partial<TailMessage>, string]>([
  [
    'an asset',
    { feed: 'asset', data: announcement },
    'asset         offline  drone  ArduPilot Quadrotor 4.5.7  no heartbeat for 5 s',
  ],
  ['an asset that is gone', { feed: 'asset', data: null }, `asset         ${texts.removed}`],
  ['figures', { data: { lat: 52.1, fix: null, sats: [], timestamp: time } }, 'gps           lat=52.1'],
  [
    'lists',
    { feed: 'mesh', data: { neighbours: [{ mac: 'a' }, { mac: 'b' }], types: ['people', 'car'] } },
    'mesh          neighbours=2 types=people,car',
  ],
  [
    'a change of state',
    { feed: 'asset_status', data: { status: 'online', reason: null } },
    'asset_status  online',
  ],
])('%s is one line of facts', (_, changes, shown) => {
  expect(lineOf(changes)).toBe(`${at}  Falcon  ${shown}`);
});

test.each<[string, Partial<TailMessage>, string]>([
  [
    'telemetry',
    {
      ...kit,
      data: {
        wans: [{ name: 'eth0', status: 'online', latency_ms: 12.4 }, { name: 'wlan0' }],
        gateway: { name: 'gw', cpu_pct: 7.6, mem_pct: 35 },
        battery: 76,
        battery_charging: true,
        location: {
          latitude: 47.3977,
          longitude: 8.5454,
          source: 'manual',
          stale: false,
          kit_location: 'Zürich',
        },
      },
    },
    'eth0 online 12 ms, wlan0 unknown  8 % CPU, 35 % memory  battery 76 % charging  Zürich',
  ],
  ['telemetry of a newer daemon', { ...kit, data: { tide_m: 2 } }, 'tide_m=2'],
  [
    'drops',
    { ...kit, feed: 'drops', channel: 'drops', data: { drops: [dropped(2), dropped(3)] } },
    '5 expired',
  ],
  ['roster', { ...kit, feed: 'roster', channel: 'roster', data: { assets: [drone.id] } }, texts.assets(1)],
])('of the kit, %s is one line of facts', (_, changes, shown) => {
  expect(lineOf(changes)).toBe(`${at}  kit  ${(changes.feed ?? '').padEnd(12)}  ${shown}`);
});

function dropped(rows: number) {
  return { epoch: 1, lane: 'feed', reason: 'expired', rows, lo: 1, hi: 9 };
}

it('names the asset of a task, which carries the id alone', () => {
  const lines = new TailLines(plain);
  const data = {
    task_id: 't',
    asset_id: drone.id,
    command_name: 'arm',
    status: 'failed',
    result: { error: 'no GPS fix' },
  };
  const report = messageOf({ asset: null, channel: 'task/t', feed: 'task', data });
  expect(lines.line(report, undefined)).toBe(`${at}  task  task          arm  failed  no GPS fix`);
  lines.learn([drone]);
  expect(lines.line(report, undefined)).toBe(`${at}  Falcon  task          arm  failed  no GPS fix`);
});

it('leaves definitions of commands to --verbose', () => {
  expect(lineOf({ feed: 'commands', data: { revision: 1, commands: [] } })).toBeUndefined();
});

it.each([20, 40, 80, 120])('never exceeds %i columns, nor splits a wide character', (columns) => {
  const name = '北ゲートのカメラ・とても長い名前のもの';
  const wide = lineOf({ asset: { ...drone, name }, data: { text: 'カメラ'.repeat(40) } }, columns);
  expect(widthOf(wide ?? '')).toBeLessThanOrEqual(columns);
  expect(widthOf(wide ?? '')).toBeGreaterThanOrEqual(columns - 1);
  expect(wide?.endsWith('…')).toBe(true);
});

it('shows what would move the cursor by its code', () => {
  expect(lineOf({ data: { text: '\u001B[2J' } })).toBe(`${at}  Falcon  gps           text=\\u{1b}[2J`);
});

it('aligns subjects with the longest before them', () => {
  const lines = new TailLines(plain);
  lines.line(messageOf({ asset: { ...drone, id: 'x', name: 'Gate camera' } }), 80);
  expect(lines.line(messageOf(), 80)).toBe(`${at}  Falcon       gps           lat=52.1 lon=4.3`);
});
