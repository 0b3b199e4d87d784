/** Commands that change what a vehicle has set: home, heading, the height of its return. */
import { describe, expect, it } from 'vitest';
import { texts as parameter_texts } from '../../../../../drivers/mavlink/commands/parameter-texts.ts';
import { texts } from '../../../../../drivers/mavlink/commands/texts.ts';
import { field } from '../../../../fakes/fake-drone.ts';
import { withDrone } from '../mavlink-lab.ts';
import { autopilots } from './commands-lab.ts';

const name = 'Quadrotor 1';
const refused = (reason: string): string => texts.not_sent(texts.about(name, reason));

describe.concurrent('set_home', () => {
  it.each(autopilots)(
    'sets it where the vehicle is, or at a place, as its report shows: %s',
    async (autopilot) => {
      await withDrone({ autopilot, airborne: true }, async (lab, drone) => {
        drone.flight.mode = 'LOITER';
        await lab.sees('vfr_hud', ({ groundspeed }) => groundspeed === 0);
        const rounded = (degrees: number): number => Math.round(degrees * 1e7) / 1e7;
        const [lat, lon] = [rounded(drone.flight.lat), rounded(drone.flight.lon)];
        expect(await lab.command('set_home')).toMatchObject({ acknowledged: true });
        expect(drone.flight.home).toMatchObject({ lat, lon });
        const place = { lat: field.lat + 0.002, lon: field.lon, alt_amsl_m: 500 };
        expect(await lab.command('set_home', place)).toMatchObject({ ...place, acknowledged: true });
        expect(drone.flight.home).toMatchObject(place);
      });
    },
  );

  it('is refused far away, for half a place, and on the way home', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      await expect(lab.command('set_home', { lat: field.lat })).rejects.toThrow(texts.home_incomplete);
      await expect(lab.command('set_home', { lat: field.lat + 1, lon: field.lon })).rejects.toThrow(
        /2000 m are allowed \(goto\.distance_max_m\); command not sent$/u,
      );
      drone.flight.mode = 'RTL';
      await lab.sees('sys_status', ({ flight_mode }) => flight_mode === 'RTL');
      await expect(lab.command('set_home')).rejects.toThrow(refused(texts.on_way_home));
      expect(drone.commands.filter(({ command }) => command === 179)).toEqual([]);
    });
  });
});

describe.concurrent('set_heading', () => {
  it.each(autopilots)('turns the vehicle, as its attitude shows: %s', async (autopilot) => {
    await withDrone({ autopilot, airborne: true }, async (lab, drone) => {
      drone.flight.mode = 'GUIDED';
      await lab.sees(
        'sys_status',
        ({ flight_mode }) => flight_mode === (autopilot === 'px4' ? 'LOITER' : 'GUIDED'),
      );
      expect(await lab.command('set_heading', { heading_deg: 275 })).toEqual({
        heading_deg: 275,
        acknowledged: true,
      });
      expect(drone.flight.heading_deg).toBeCloseTo(275, 1);
    });
  });

  it('is refused by an ArduCopter that is not in GUIDED, and beyond 360 degrees', async () => {
    await withDrone({ airborne: true }, async (lab) => {
      await expect(lab.command('set_heading', { heading_deg: 10 })).rejects.toThrow(refused(texts.turn_mode));
      await expect(lab.command('set_heading', { heading_deg: 361 })).rejects.toThrow('too_big');
    });
  });
});

/** Names and units by vehicle and release: ArduCopter 4.7 and ArduPlane 4.5 renamed theirs. */
const returns = [
  { about: {}, parameter: 'RTL_ALT', units: 100, before: 1_500, isInteger: true },
  { about: {}, parameter: 'RTL_ALT_M', units: 1, before: 15, isInteger: false },
  { about: { type: 1 }, parameter: 'ALT_HOLD_RTL', units: 100, before: 10_000, isInteger: true },
  { about: { type: 1 }, parameter: 'RTL_ALTITUDE', units: 1, before: 100, isInteger: false },
  { about: { autopilot: 'px4' }, parameter: 'RTL_RETURN_ALT', units: 1, before: 60, isInteger: false },
] as const;

describe.concurrent('change_return_altitude', () => {
  it.each(returns)(
    'writes $parameter and reads it back',
    async ({ about, parameter, units, before, isInteger }) => {
      await withDrone(about, async (lab, drone) => {
        const { stored } = drone.parameters;
        stored.delete('RTL_ALT');
        stored.set(parameter, { value: before, isInteger });
        expect(await lab.command('change_return_altitude', { height_m: 45 })).toEqual({
          height_m: 45,
          parameter,
          before_m: before / units,
        });
        expect(stored.get(parameter)?.value).toBe(45 * units);
      });
    },
  );

  it('fails when the vehicle keeps another value, has none of the parameters, or the height is beyond the limits', async () => {
    await withDrone({}, async (lab, drone) => {
      const { stored } = drone.parameters;
      await expect(lab.command('change_return_altitude', { height_m: 121 })).rejects.toThrow('too_big');
      const kept = { value: 1_500, isInteger: true };
      const keep = stored.set.bind(stored);
      stored.set = (key) => keep(key, kept);
      await expect(lab.command('change_return_altitude', { height_m: 45 })).rejects.toThrow(
        parameter_texts.kept_other(name, 'RTL_ALT', { sent: 4_500, held: 1_500 }),
      );
      stored.delete('RTL_ALT');
      await expect(lab.command('change_return_altitude', { height_m: 45 })).rejects.toThrow(
        parameter_texts.none_answered(name, 'RTL_ALT_M, RTL_ALT', 8),
      );
    });
  });
});
