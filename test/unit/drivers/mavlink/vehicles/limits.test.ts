/** The limit of a vehicle's commands follows its hardware, whatever its key is made of and whichever system id it has. */
import { describe, expect, it } from 'vitest';
import { commandsOf, mavlinkOptions } from '../../../../../drivers/mavlink/options.ts';
import { autopilotVersion } from '../../../../../drivers/mavlink/sim/telemetry.ts';
import { texts } from '../../../../../drivers/mavlink/vehicles/texts.ts';
import {
  assets,
  beat,
  clock,
  keyOf,
  lab,
  live,
  open,
  receive,
  registry,
  uidOf,
  useRegistry,
} from './registry-lab.ts';

const peer = '10.9.9.9:14550';
const key = keyOf(0xc0ffee);
const shown = (): unknown =>
  registry.vehicles.map(({ asset_key, name, active, online }) => [asset_key, name, active.sysid, online]);

describe('A vehicle whose system id is changed', () => {
  useRegistry();

  // ArduPilot#4531, qgroundcontrol#2245: SYSID_THISMAV is changed on the bench or in flight.
  it.each([
    { name: 'Falcon', vehicles: { [key]: { name: 'Falcon', commands: ['return_home'] } } },
    { name: 'Quadrotor 1', vehicles: {} },
  ])('stays the same asset: $name', ({ name, vehicles }) => {
    open(vehicles);
    live(peer, 1, 0xc0ffee, 5);
    live(peer, 7, 0xc0ffee, 9);
    expect(shown()).toEqual([[key, name, 7, true]]);
    expect(assets()).toEqual([key]);
    expect(lab.log.at('info')).toContain(texts.system_id_changed);
    live(peer, 1, 0xc0ffee, 9);
    expect(shown()).toEqual([[key, name, 1, true]]);
  });

  it('is another one with its name and its limits while both system ids are received', () => {
    open({ [key]: { name: 'Falcon', commands: ['return_home'] } });
    for (let n = 0; n < 20; n += 1) {
      live(peer, 1, 0xc0ffee, 0.3);
      live('10.9.9.8:14550', 7, 0xc0ffee, 0.3);
    }
    expect(shown()).toEqual([
      [key, 'Falcon', 1, true],
      [`${key}:system-7`, 'Falcon (system 7)', 7, true],
    ]);
  });

  it('gets the limits of its longer id when that is the configured one and comes later', () => {
    const uid2 = Array.from({ length: 18 }, () => 0xab);
    const longer = `mavlink:${Buffer.from(uid2).toString('hex')}`;
    open({ [longer]: { name: 'Falcon', commands: ['return_home'] } });
    receive(peer, { sysid: 7, compid: 1, version: 1 }, 'HEARTBEAT', beat);
    receive(
      peer,
      { sysid: 7, compid: 1, version: 1 },
      'AUTOPILOT_VERSION',
      autopilotVersion(uidOf(0xc0ffee)),
    );
    const beatOn = (seconds: number): void => {
      for (let n = 0; n < seconds; n += 1) {
        receive(peer, 7, 'HEARTBEAT', beat);
        clock.now_ms += 1_000;
        registry.tick(clock.now_ms);
      }
    };
    beatOn(10);
    expect(assets()).toEqual([key]);
    receive(peer, 7, 'AUTOPILOT_VERSION', { ...autopilotVersion(uidOf(0xc0ffee)), uid2 });
    beatOn(10);
    expect(shown()).toEqual([[longer, 'Falcon', 7, true]]);
    expect(assets()).toEqual([longer]);
  });
});

describe('The commands of a vehicle', () => {
  const [a, b, longer, provisional] = ['mavlink:a', 'mavlink:b', 'mavlink:aa', 'mavlink:system-3'];
  const home = ['return_home', 'land'];
  it.each([
    { what: 'its own', vehicles: { [a]: home }, keys: [a, a], commands: home },
    {
      what: 'of a second vehicle with its hardware id',
      vehicles: { [a]: home },
      keys: [`${a}:system-7`, a],
      commands: home,
    },
    {
      what: 'of its own second entry',
      vehicles: { [a]: home, [`${a}:system-7`]: ['arm'] },
      keys: [`${a}:system-7`, a],
      commands: ['arm'],
    },
    { what: 'of its other number', vehicles: { [longer]: home }, keys: [a, a, longer, a], commands: home },
    {
      what: 'without a known id: those that no vehicle lacks',
      vehicles: { [a]: ['arm', 'goto_waypoint'], [b]: ['arm'] },
      keys: [provisional],
      commands: ['arm'],
    },
    {
      what: 'without a known id: the way home of each',
      vehicles: { [a]: home, [b]: ['hold', 'arm'] },
      keys: [provisional],
      commands: ['return_home', 'hold', 'land'],
    },
    {
      what: 'without a known id: as configured for it',
      vehicles: { [a]: home, [provisional]: ['arm'] },
      keys: [provisional],
      commands: ['arm'],
    },
  ])('are $what', ({ vehicles, keys, commands }) => {
    const limited = Object.entries(vehicles).map(([name, list]) => [name, { commands: list }] as const);
    const options = mavlinkOptions.parse({
      links: [{ kind: 'udp_listen', port: 14_550 }],
      vehicles: Object.fromEntries<object>(limited),
    });
    const isProvisional = keys[0] === provisional;
    expect(new Set(commandsOf(options, keys, { isProvisional }))).toEqual(new Set(commands));
  });

  it('of an unknown one are those of the driver', () => {
    const options = mavlinkOptions.parse({
      links: [{ kind: 'udp_listen', port: 14_550 }],
      vehicles: { [a]: { commands: home } },
    });
    expect(commandsOf(options, [b], { isProvisional: false })).toEqual(options.commands);
  });
});
