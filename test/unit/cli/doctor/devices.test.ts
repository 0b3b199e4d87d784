/** What the doctor says about the configured devices of a driver. */
import { expect, test } from 'vitest';
import { texts as vendorcamTexts } from '../../../../drivers/vendorcam/texts.ts';
import { kitFindings } from '../../../../src/cli/doctor/kit.ts';
import { statusOf, time } from '../../kit/local/fake-daemon.ts';

test('a refused password, a camera without an answer and a weakness are named, with what was tried and the next attempt', () => {
  const { drivers, assets } = statusOf();
  const [driver] = drivers;
  const [asset] = assets;
  if (!driver || !asset) throw new Error('the sample has a driver and an asset');
  const failed = { tried_at: time, next_try_at: time };
  const devices = [
    {
      name: 'gate',
      tried: '10.0.0.5:80',
      asset_key: asset.key,
      state: 'rejected',
      reason: 'no (Locked); unlock it',
      ...failed,
    },
    { name: 'yard', tried: '10.0.0.6:80', asset_key: null, state: 'offline', reason: 'timed out', ...failed },
    {
      name: 'mast',
      tried: '10.0.0.7:80',
      asset_key: 'k',
      state: 'online',
      reason: null,
      tried_at: null,
      next_try_at: null,
      weakness: 'checks nobody; use a certificate',
    },
  ];
  const asleep = { ...asset, key: 'other', status: 'offline' as const, reason: vendorcamTexts.asleep };
  const findings = kitFindings(
    statusOf({
      drivers: [{ ...driver, name: 'onvif', driver: 'onvif', state: 'up', devices }],
      assets: [{ ...asset, status: 'offline' }, asleep],
    }),
    [],
  );
  const about = findings.filter(({ what }) => /device|driver|other/u.test(what));
  expect(about.map(({ level, what }) => `${level} ${what}`)).toEqual([
    'ok driver onvif',
    'fail device gate of onvif',
    'warn device yard of onvif',
    'warn device mast of onvif',
    'ok drone Falcon (other)',
  ]);
  expect(about[1]?.finding).toMatch(/10\.0\.0\.5:80.*no \(Locked\)$/u);
  expect(about[3]).toMatchObject({ finding: 'checks nobody', remedy: 'use a certificate' });
  expect(about[1]?.remedy).toMatch(/^unlock it;.*\d\d:\d\d:\d\d$/u);
  expect(findings.filter(({ what }) => what.includes(`(${asset.key})`))).toEqual([]);
});

test('a driver with one device names its answer and the next attempt, and why a connected device gives nothing', () => {
  const [driver] = statusOf().drivers;
  if (!driver) throw new Error('the sample has a driver');
  const location = { ...driver, name: 'location', driver: 'location' };
  const reason = 'gpsd at 127.0.0.1:2947: connection refused';
  const mute = { receiver: 'mute', reason: 'receiver sends nothing; check its cable' };
  const of = (more: object) =>
    kitFindings(statusOf({ drivers: [{ ...location, ...more }] }), []).find(({ what }) =>
      what.includes('location'),
    );
  for (const state of ['down', 'rejected']) {
    const found = of({ state, reason, next_try_at: time });
    expect(found).toMatchObject({ level: 'fail' });
    expect(found?.finding).toContain(reason);
    const known = of({ state, reason: `${reason}; check that gpsd runs`, next_try_at: time });
    expect(known?.finding).not.toContain('gpsd runs');
    expect(known?.remedy).toMatch(/^check that gpsd runs; next attempt at/u);
    expect(found?.remedy).toMatch(/; next attempt at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/u);
  }
  expect(of({ state: 'up', reason: null, facts: mute })).toMatchObject({
    level: 'warn',
    remedy: 'check its cable',
  });
  expect(of({ state: 'up', reason: null, facts: mute })?.finding).toContain('receiver sends nothing');
  expect(of({ state: 'up', reason: null, facts: { receiver: 'fix' } })).toMatchObject({ level: 'ok' });
});
