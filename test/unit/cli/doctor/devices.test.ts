/** What the doctor says about the configured devices of a driver. */
import { expect, test } from 'vitest';
import { texts as vendorcamTexts } from '../../../../drivers/vendorcam/texts.ts';
import { kitFindings } from '../../../../src/cli/doctor/kit.ts';
import { statusOf, time } from '../../local/fake-daemon.ts';

test('a refused password and a camera without an answer are named, with what was tried and the next attempt', () => {
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
    'ok drone Falcon (other)',
  ]);
  expect(about[1]?.finding).toMatch(/10\.0\.0\.5:80.*no \(Locked\)$/u);
  expect(about[1]?.remedy).toMatch(/^unlock it;.*\d\d:\d\d:\d\d$/u);
  expect(findings.filter(({ what }) => what.includes(`(${asset.key})`))).toEqual([]);
});
