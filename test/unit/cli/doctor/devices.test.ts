/** What the doctor says about the configured devices of a driver. */
import { expect, test } from 'vitest';
import { texts as onvifTexts } from '../../../../drivers/onvif/texts.ts';
import { texts as vendorcamTexts } from '../../../../drivers/vendorcam/texts.ts';
import { kitFindings } from '../../../../src/cli/doctor/kit.ts';
import { statusOf, time } from '../../kit/local/fake-daemon.ts';

test('topics of events that are not read are named with the line to add, and are no fault', () => {
  const [driver] = statusOf().drivers;
  if (!driver) throw new Error('the sample has a driver');
  const unread = onvifTexts.events_not_read([{ camera: 'Gate', topic: 'tns1:A/B', count: 12 }], 2);
  const facts = { events_not_read: unread };
  const findings = kitFindings(statusOf({ drivers: [{ ...driver, name: 'onvif', state: 'up', facts }] }), []);
  expect(findings.find(({ what }) => what === 'events of onvif')).toEqual({
    level: 'ok',
    what: 'events of onvif',
    finding:
      'not read: tns1:A/B of Gate (12) and 2 more; where one is an alarm, add it to the options: events: [{ topic: "tns1:A/B", feed: motion }]',
    remedy: null,
  });
});

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

// ZoneMinder #4191: only the log showed whether the events of a camera were subscribed.
test('a camera that is online and does not deliver its events is a warning, and its driver is not well', () => {
  const { drivers, assets } = statusOf();
  const [driver] = drivers;
  const [asset] = assets;
  if (!driver || !asset) throw new Error('the sample has a driver and an asset');
  const reason = 'camera refused the request (Maximum number of pull points); end other clients';
  const health = {
    events: { state: 'fails', reason, next_try_at: time },
    stream: { state: 'works', reason: null, next_try_at: null },
    commands: { state: 'not_offered', reason: null, next_try_at: null },
  };
  const gate = { ...asset, name: 'Gate', type: 'camera', status: 'online' as const, driver: 'onvif', health };
  const device = { name: 'Gate', tried: '10.0.0.5:80', asset_key: gate.key, state: 'online', reason: null };
  const devices = [{ ...device, tried_at: null, next_try_at: null }];
  const onvif = { ...driver, name: 'onvif', driver: 'onvif', state: 'up', devices };
  const about = kitFindings(statusOf({ drivers: [onvif], assets: [gate] }), []).slice(-2);
  expect(about[0]).toMatchObject({ level: 'warn', what: 'driver onvif' });
  expect(about[0]?.finding).toContain('1 asset does not deliver everything');
  expect(about[1]).toMatchObject({
    level: 'warn',
    what: `camera Gate (${gate.key})`,
    finding: 'no events: camera refused the request (Maximum number of pull points)',
  });
  expect(about[1]?.remedy).toMatch(/^end other clients; next attempt at/u);
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
