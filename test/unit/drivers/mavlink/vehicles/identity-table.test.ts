/**
 * What the sender of a vehicle shows, and what the driver makes of it: the key of its asset, to which its history belongs, its name, the
 * limit of its commands, its alarm. In each row its telemetry goes on, and it is sent home.
 */
import { describe, expect, it } from 'vitest';
import { texts as refusals } from '../../../../../drivers/mavlink/commands/texts.ts';
import { command_names } from '../../../../../drivers/mavlink/options.ts';
import { texts } from '../../../../../drivers/mavlink/vehicles/texts.ts';
import { blank } from '../../../../../drivers/mavlink/wire/messages.ts';
import { every, sleep } from '../../../../../src/platform/time.ts';
import { assetId } from '../../../../../src/contract/identity.ts';
import { FakeDrone } from '../../../../fakes/fake-drone.ts';
import { kit_id } from '../../../../support/kit/hub-lab.ts';
import { freePort } from '../../../../support/ports.ts';
import { drone_key, type MavlinkLab, withLab } from '../mavlink-lab.ts';

const other_uid = '00000000c0ffee02';
const other_key = `mavlink:${other_uid}`;
const no_uid = '0000000000000000';
const uid2 = Array.from({ length: 18 }, (_, at) => (at < 12 ? 0xab : 0));
const long_key = `mavlink:${Buffer.from(uid2).toString('hex')}`;
const limited = { name: 'Falcon', commands: ['return_home', 'hold'] };
const never = new AbortController().signal;

interface Scene {
  readonly lab: MavlinkLab;
  readonly drone: FakeDrone;
  readonly second_port: number;
  /** Ended with the row. */
  readonly others: FakeDrone[];
  readonly signal: AbortSignal;
}

interface Row {
  readonly what: string;
  readonly about?: Partial<ConstructorParameters<typeof FakeDrone>[0]>;
  /** Before it is received for the first time. */
  readonly first?: (drone: FakeDrone) => void;
  /** Once it is online under `before`. */
  readonly later?: (scene: Scene) => Promise<unknown> | void;
  /** The configured key. */
  readonly configured?: string;
  /** Its keys before and after; that of `about` when omitted. */
  readonly before?: string;
  readonly key?: string;
  readonly name?: string;
  readonly isLimited?: boolean;
  readonly alarm?: string;
  /** It may have been the other one that went home. */
  readonly isDoubtful?: boolean;
  /** Other assets that are there. */
  readonly others?: readonly string[];
}

async function add(
  { lab, drone, others }: Scene,
  about: NonNullable<Row['about']>,
  isBeside = false,
): Promise<void> {
  const other = new FakeDrone({ port: lab.port, airborne: true, uptime_ms: 100_000, ...about });
  others.push(other);
  if (isBeside) other.shareAddressOf(drone);
  await other.start();
}

/** In the air. */
async function restart(drone: FakeDrone, how: { readonly keep_port: boolean }): Promise<void> {
  await drone.reboot(how);
  Object.assign(drone.flight, { armed: true, height_m: 20 });
}

const rows: readonly Row[] = [
  { what: 'one number, in MAVLink 2' },
  {
    what: 'MAVLink 1 alone',
    first: (drone) => Object.assign(drone, { speaks_mavlink1: true, reads_mavlink1_only: true }),
  },
  {
    what: 'MAVLink 1 until the kit sends 2, and both numbers then (PX4-Autopilot#25583)',
    first: (drone) => Object.assign(drone, { uid2, speaks_mavlink1: true, changes_to_mavlink2: true }),
  },
  { what: 'both numbers, configured by the shorter one', first: (drone) => Object.assign(drone, { uid2 }) },
  {
    what: 'both numbers, configured by the longer one',
    first: (drone) => Object.assign(drone, { uid2 }),
    configured: long_key,
    key: long_key,
  },
  {
    what: 'the longer number alone (ArduPilot#19502)',
    about: { uid: no_uid },
    first: (drone) => Object.assign(drone, { uid2 }),
    configured: long_key,
    key: long_key,
  },
  {
    what: 'no number at all',
    about: { uid: no_uid },
    configured: 'mavlink:system-1',
    key: 'mavlink:system-1',
  },
  {
    what: 'another system id from now on (ArduPilot#4531)',
    later: async (scene) => {
      scene.drone.silent = true;
      await add(scene, { sysid: 7 });
    },
  },
  { what: 'a restart behind its radio', later: async ({ drone }) => restart(drone, { keep_port: true }) },
  { what: 'a restart, and another port', later: async ({ drone }) => restart(drone, { keep_port: false }) },
  {
    what: 'another radio at the same host after a silence',
    later: async (scene) => {
      scene.drone.silent = true;
      await scene.lab.until('offline');
      await add(scene, {});
    },
  },
  {
    what: 'another autopilot behind the same radio',
    later: async ({ drone }) => {
      drone.uid = other_uid;
      await restart(drone, { keep_port: true });
    },
    before: drone_key,
    key: other_key,
    name: 'Quadrotor 1',
    isLimited: false,
    others: [drone_key],
  },
  {
    what: 'a second vehicle with another system id behind its address',
    later: async (scene) => add(scene, { sysid: 2, uid: other_uid }, true),
    others: [other_key],
  },
  {
    what: 'a second vehicle with its system id behind its address',
    later: async (scene) => add(scene, { uid: other_uid }, true),
    alarm: texts.id_shared(1),
    isDoubtful: true,
  },
  {
    what: 'a second vehicle with its system id at another port',
    later: async (scene) => add(scene, { uid: other_uid }),
    alarm: texts.id_shared(1),
    others: [other_key],
  },
  { what: 'itself over two links', later: ({ drone, second_port }) => drone.alsoTo(second_port) },
  { what: 'each frame twice', later: ({ drone, lab }) => drone.alsoTo(lab.port) },
  { what: 'each frame 2 s late', later: ({ drone }) => Object.assign(drone, { lag_ms: 2_000 }) },
  {
    what: 'heartbeats of another program with its ids (ArduPilot#7088)',
    later: ({ drone, signal }) =>
      every(500, signal, () => {
        const kind = { type: 18, autopilot: 8, system_status: 4, mavlink_version: 3 };
        const beat = { ...blank('HEARTBEAT'), ...kind };
        drone.announced = beat;
        drone.send('HEARTBEAT', { ...beat });
        drone.announced = {};
      }),
    alarm: texts.alien_heartbeats(1, 1),
  },
];

describe.concurrent('A vehicle that shows', () => {
  it.each(rows)('$what', async (row) => {
    const { configured = drone_key, key = drone_key, name = 'Falcon', isLimited = true } = row;
    const second_port = await freePort();
    const first_port = await freePort();
    const links = [first_port, second_port].map((port) => ({ kind: 'udp_listen', host: '127.0.0.1', port }));
    await withLab({ links, vehicles: { [configured]: limited } }, async (lab) => {
      const drone = new FakeDrone({ port: first_port, airborne: true, uptime_ms: 60_000, ...row.about });
      const others: FakeDrone[] = [];
      const ending = new AbortController();
      const { signal } = ending;
      row.first?.(drone);
      await drone.start();
      try {
        await lab.sees('gps', ({ relative_alt_m }) => relative_alt_m !== null, row.before ?? key);
        await row.later?.({ lab: { ...lab, port: first_port }, drone, second_port, others, signal });
        await sleep(12_000, never);
        lab.outbox.clear();
        for (const feed of ['gps', 'attitude', 'battery']) await lab.sees(feed, () => true, key);
        const { alarms } = await lab.sees('sys_status', ({ flight_mode }) => flight_mode !== null, key);
        expect(alarms).toEqual(row.alarm === undefined ? undefined : [row.alarm]);
        const assets = lab.hub.assets();
        expect(assets.map((asset) => asset.key).toSorted()).toEqual([key, ...(row.others ?? [])].toSorted());
        expect(assets.find((asset) => asset.key === key)).toMatchObject({ name, status: 'online' });
        expect('command' in lab.hub.findCommand(assetId(kit_id, key), 'arm')).toBe(!isLimited);
        const home = lab.command('return_home', {}, { key });
        const outcome = await home.then(
          ({ flight_mode }) => flight_mode,
          (error: unknown) => String(error),
        );
        expect(outcome).toContain(row.isDoubtful === true ? refusals.unknown_outcome('') : 'RTL');
        expect([drone, ...others].some(({ flight }) => flight.mode === 'RTL')).toBe(true);
      } finally {
        ending.abort();
        for (const each of [drone, ...others]) each.stop();
      }
    });
  });
});

/** They carry out no command of MAVLink: what they report is shown, and nothing is offered. */
describe.concurrent('An iNav or a Betaflight', () => {
  it.each([
    { what: 'as it is', announced: { autopilot: 0 } },
    { what: 'announced as ArduPilot (QOpenHD#206)', announced: {} },
  ])('has telemetry only, and says so: $what', async ({ announced }) => {
    await withLab(async (lab) => {
      const drone = await lab.fly({ airborne: true, uid: no_uid });
      Object.assign(drone, { announced, counts_microseconds: true });
      // Older ones do not answer who they are.
      drone.withheld.add('AUTOPILOT_VERSION');
      drone.deaf = true;
      const key = 'mavlink:system-1';
      const there = { ...blank('GLOBAL_POSITION_INT'), lat: 473_977_420, lon: 85_455_940, alt: 5e5 };
      const ending = new AbortController();
      every(500, ending.signal, () => {
        const time_boot_ms = Math.round(performance.now());
        drone.send('ATTITUDE', { ...blank('ATTITUDE'), time_boot_ms });
        drone.send('GLOBAL_POSITION_INT', { ...there, time_boot_ms });
      });
      await lab.sees('attitude', () => true, key);
      const asset = lab.hub.assets().find((each) => each.key === key);
      expect(asset).toMatchObject({ status: 'online' });
      const described = await lab.outbox.until(({ data }) => data?.['asset_key'] === key);
      expect(described.data).toMatchObject({
        health: { commands: { state: 'not_offered', reason: texts.telemetry_only } },
      });
      for (const command of ['arm', 'return_home', 'set_mode', 'goto_waypoint'])
        expect('command' in lab.hub.findCommand(assetId(kit_id, key), command)).toBe(false);
      ending.abort();
    });
  });
});

/** No table knows its modes: what MAVLink defines for all is offered, and its own list shows the effect. */
describe.concurrent('A vehicle of another autopilot', () => {
  it.each([
    {
      what: 'that lists its standard modes (qgroundcontrol#13472)',
      autopilot: 0,
      modes: [{ custom_mode: 6, mode_name: 'Heim', standard_mode: 5 }],
      outcome: 'Heim',
    },
    {
      what: 'that lists them without names, as only other modes need one',
      autopilot: 0,
      modes: [{ custom_mode: 6, mode_name: '', standard_mode: 5 }],
      outcome: 'SAFE_RECOVERY',
    },
    {
      what: 'that names its modes',
      autopilot: 0,
      modes: [{ custom_mode: 6, mode_name: 'RTL' }],
      outcome: 'RTL',
    },
    { what: 'without a list (Paparazzi)', autopilot: 9, modes: [], outcome: refusals.unknown_outcome('') },
  ])('$what is sent home and disarmed', async ({ autopilot, modes, outcome }) => {
    await withLab(async (lab) => {
      const drone = await lab.fly();
      Object.assign(drone, { announced: { autopilot }, modes });
      Object.assign(drone.flight, { armed: true, mode: 'GUIDED' });
      await lab.sees('sys_status', ({ armed }) => armed === true);
      const offered = command_names.filter(
        (name) => 'command' in lab.hub.findCommand(assetId(kit_id, drone_key), name),
      );
      expect(offered).toEqual([
        'arm',
        'disarm',
        'return_home',
        'download_mission',
        'clear_mission',
        'get_params',
      ]);
      expect(await lab.command('disarm')).toMatchObject({ armed: false });
      Object.assign(drone.flight, { armed: true, height_m: 20 });
      lab.outbox.clear();
      await lab.sees('sys_status', ({ armed }) => armed === true);
      const home = lab.command('return_home').then(({ flight_mode }) => flight_mode, String);
      expect(await home).toContain(outcome);
      expect(drone.flight.mode).toBe('RTL');
    });
  });
});
