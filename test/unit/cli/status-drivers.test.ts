/** Drivers in `kit-connector status`: their facts, of which sentences have lines of their own. */
import { expect, it } from 'vitest';
import { statusLines } from '../../../src/cli/status/view.ts';
import { statusOf } from '../kit/local/fake-daemon.ts';

const drones = {
  name: 'drones',
  driver: 'mavlink',
  state: 'up',
  since: '2026-11-21T10:00:00.000Z',
  reason: null,
  facts: { vehicles: 2, online: 1, 'Falcon (system 1)': 'GUIDED, armed, battery 76 %', radio: 'up' },
};

function driverLines(columns?: number): readonly string[] {
  const all = statusLines(statusOf({ drivers: [drones] }), (_colour, text) => text, columns);
  const from = all.indexOf('drivers');
  return all.slice(from, from + (columns === undefined ? 3 : 4));
}

it('shows numbers and words in the line of the driver, and sentences below it', () => {
  const [, line, below] = driverLines();
  expect(line).toMatch(/^ {2}drones {2}mavlink {2}up {2}since .* {2}vehicles=2 {2}online=1 {2}radio=up$/u);
  expect(below).toBe('    Falcon (system 1): GUIDED, armed, battery 76 %');
});

it('leaves out facts that have no value', () => {
  const links = { ...drones, facts: { routes: 'netlink', order: null } };
  const all = statusLines(statusOf({ drivers: [links] }), (_colour, text) => text, undefined);
  expect(all.find((line) => line.includes('routes=netlink'))).not.toContain('order');
});

it('folds sentences on a narrow terminal, so that nothing of them is lost', () => {
  const [, , ...below] = driverLines(40);
  expect(below).toEqual(['    Falcon (system 1): GUIDED, armed,', '      battery 76 %']);
});

it('shows below an asset what it does not deliver, with the words of the device and the next try', () => {
  const [asset] = statusOf().assets;
  if (!asset) throw new Error('the sample has an asset');
  const health = {
    events: { state: 'fails', reason: 'no room; wait', next_try_at: drones.since },
    stream: { state: 'works', reason: null, next_try_at: null },
  };
  const all = statusLines(
    statusOf({
      assets: [
        { ...asset, status: 'online', health },
        { ...asset, key: 'other' },
      ],
    }),
    (_colour, text) => text,
    undefined,
  );
  const at = all.indexOf('assets');
  expect(all[at + 1]).toMatch(/ {2}degraded {2}/u);
  expect(all[at + 2]).toMatch(/^ {4}! no events: no room; wait {2}next try \S/u);
  expect(all[at + 3]).toContain('other');
});

it('shows the reason of a device that is not served once, with what was tried', () => {
  const device = {
    name: 'gate',
    tried: '10.0.0.5:443',
    asset_key: null,
    state: 'offline',
    reason: 'timed out; check its power',
    tried_at: drones.since,
    next_try_at: drones.since,
  };
  const facts = { gate: 'timed out; check its power', yard: 'online, by push' };
  const all = statusLines(
    statusOf({ drivers: [{ ...drones, facts, devices: [device] }] }),
    (_colour, text) => text,
    undefined,
  );
  expect(all.filter((line) => line.includes('check its power'))).toEqual([
    expect.stringContaining('10.0.0.5:443'),
  ]);
  expect(all.filter((line) => line.includes('by push'))).toHaveLength(1);
});
