/** One vehicle that seems to be two: its numbers, its clocks and its MAVLink version change. It stays one asset that is served. */
import { beforeEach, describe, expect, it } from 'vitest';
import { autopilotVersion } from '../../../../../drivers/mavlink/sim/telemetry.ts';
import { blank } from '../../../../../drivers/mavlink/wire/messages.ts';
import { assetId } from '../../../../../src/contract/identity.ts';
import { channels } from '../../../../../src/contract/topics.ts';
import { eventually } from '../../../../support/eventually.ts';
import { kit_id } from '../../../../support/kit/hub-lab.ts';
import { withLab } from '../mavlink-lab.ts';
import {
  assets,
  beat,
  clock,
  keyOf,
  lab,
  open,
  receive,
  registry,
  uidOf,
  useRegistry,
} from './registry-lab.ts';

const no_uid = '0000000000000000';
const uid2 = Array.from({ length: 18 }, (_, at) => (at < 12 ? 0xab : 0));
const long_key = `mavlink:${Buffer.from(uid2).toString('hex')}`;

describe.concurrent('A vehicle that starts in MAVLink 1 and changes to 2', () => {
  it.each([
    { autopilot: 'px4', uid: '00000000c0ffee01' },
    // Up to 4.1 its shorter id is 0 (ArduPilot#19502).
    { autopilot: 'ardupilot', uid: no_uid },
  ] as const)(
    'has its longer id from the start, and returns home: $autopilot',
    async ({ autopilot, uid }) => {
      await withLab(async (one) => {
        const drone = await one.fly({ autopilot, uid, airborne: true });
        Object.assign(drone, { uid2, speaks_mavlink1: true, changes_to_mavlink2: true });
        await one.sees('gps', ({ relative_alt_m }) => relative_alt_m !== null, long_key);
        expect(one.hub.assets().map(({ key }) => key)).toEqual([long_key]);
        expect(await one.command('return_home', {}, { key: long_key })).toMatchObject({ flight_mode: 'RTL' });
        expect(one.log.at('error')).toEqual([]);
      });
    },
  );
});

describe('A vehicle', () => {
  useRegistry();
  let switched_on_ms = 0;
  beforeEach(() => {
    switched_on_ms = clock.now_ms - 100_000;
  });
  const peer = '10.9.9.9:14550';
  const sender = { sysid: 7, compid: 1 };
  const at = { lat: 473_977_420, lon: 85_455_940, alt: 520_000 };
  const there = { ...blank('GLOBAL_POSITION_INT'), ...at, relative_alt: 30_000 };
  const quality = { fix_type: 3, eph: 80, epv: 120, satellites_visible: 14, alt_ellipsoid: 567_000 };
  const gps = { ...blank('GPS_RAW_INT'), ...at, ...quality };
  /** Receives a second of its telemetry. `position_ms`: the clock of its position. */
  const fly = (version: 1 | 2, position_ms = (ms: number) => ms): void => {
    const from = { ...sender, version };
    const uptime_ms = Math.round(clock.now_ms - switched_on_ms);
    receive(peer, from, 'HEARTBEAT', { ...beat, base_mode: 209 });
    receive(peer, from, 'ATTITUDE', { ...blank('ATTITUDE'), time_boot_ms: uptime_ms });
    receive(peer, from, 'GPS_RAW_INT', gps);
    const time_boot_ms = position_ms(uptime_ms) % 2 ** 32;
    receive(peer, from, 'GLOBAL_POSITION_INT', { ...there, time_boot_ms });
    clock.now_ms += 1_000;
    registry.tick(clock.now_ms);
  };
  const feed = (key: string, name: string) =>
    lab.outbox.drafts.filter(({ channel }) => channel === channels.feed(assetId(kit_id, key), name));
  const expectServed = async (key: string, flyOn: () => void): Promise<void> => {
    lab.outbox.clear();
    await eventually('its feeds', () => {
      flyOn();
      return ['gps', 'attitude', 'sys_status'].every((name) => feed(key, name).length > 0);
    });
    for (const { data } of feed(key, 'sys_status'))
      expect([data?.['armed'], data?.['alarms']]).toEqual([true, undefined]);
    expect(registry.vehicles.map(({ active, conflict }) => [active.boots, conflict])).toEqual([
      [0, undefined],
    ]);
    expect(lab.log.at('error')).toEqual([]);
  };

  it.each([
    {
      what: 'whose longer id is received later',
      key: keyOf(0xc0ffee),
      before: uidOf(0xc0ffee),
      after: uidOf(0xc0ffee),
    },
    {
      what: 'that reports another id, once',
      key: keyOf(0xc0ffee),
      before: uidOf(0xc0ffee),
      after: uidOf(0xbad),
    },
  ])('$what stays the same asset with its feeds and commands', async ({ key, before, after }) => {
    open();
    receive(peer, { ...sender, version: 1 }, 'HEARTBEAT', beat);
    receive(peer, { ...sender, version: 1 }, 'AUTOPILOT_VERSION', autopilotVersion(before));
    for (let s = 0; s < 30; s += 1) fly(1);
    receive(peer, 7, 'AUTOPILOT_VERSION', { ...autopilotVersion(after), uid2 });
    for (let s = 0; s < 30; s += 1) fly(2);
    expect(assets()).toEqual([key]);
    await expectServed(key, () => fly(2));
  });

  it.each([
    { what: 'in one message (iNav, Betaflight)', position_ms: (ms: number) => ms * 1_000 },
    { what: 'nowhere', position_ms: (ms: number) => ms },
  ])('that counts microseconds $what is one, without restarts', async ({ position_ms }) => {
    open();
    receive(peer, 7, 'HEARTBEAT', beat);
    receive(peer, 7, 'AUTOPILOT_VERSION', autopilotVersion(uidOf(0xc0ffee)));
    for (let s = 0; s < 20; s += 1) fly(2, position_ms);
    expect(assets()).toEqual([keyOf(0xc0ffee)]);
    await expectServed(keyOf(0xc0ffee), () => fly(2, position_ms));
  });
});
