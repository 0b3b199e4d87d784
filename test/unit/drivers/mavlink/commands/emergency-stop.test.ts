/** The motors are stopped in the air where that is configured, and by nobody who has not typed it. */
import { describe, expect, it } from 'vitest';
import { texts } from '../../../../../drivers/mavlink/vehicles/texts.ts';
import { assetId } from '../../../../../src/contract/identity.ts';
import { FakeDrone } from '../../../../fakes/fake-drone.ts';
import { kit_id } from '../../../../support/kit/hub-lab.ts';
import { drone_key, type MavlinkLab, withDrone } from '../mavlink-lab.ts';
import { autopilots } from './commands-lab.ts';

const forced = 21_196;
const confirm = { confirm: 'STOP MOTORS' };
const configured = { vehicles: { [drone_key]: { commands: ['return_home', 'emergency_stop'] } } };
const offered = (lab: MavlinkLab): boolean =>
  'command' in lab.hub.findCommand(assetId(kit_id, drone_key), 'emergency_stop');

describe.concurrent('emergency_stop', () => {
  it('is off unless it is configured', async () => {
    await withDrone({ airborne: true }, async (lab) => expect(offered(lab)).toBe(false));
    await withDrone({ airborne: true }, configured, async (lab) => expect(offered(lab)).toBe(true));
  });

  it.each(autopilots)('stops the motors in the air, also when frames are lost: %s', async (autopilot) => {
    await withDrone({ airborne: true, autopilot }, configured, async (lab, drone) => {
      drone.react = (_command, execute) => (drone.commands.length < 3 ? undefined : execute());
      expect(await lab.command('emergency_stop', confirm)).toEqual({ armed: false, acknowledged: true });
      expect(drone.flight.armed).toBe(false);
      expect(drone.commands.map(({ param1, param2 }) => [param1, param2])).toEqual(
        Array.from({ length: 3 }, () => [0, forced]),
      );
    });
  });

  it.each([{}, { confirm: 'stop motors' }, { confirm: 'yes' }])('is refused with %j', async (payload) => {
    await withDrone({ airborne: true }, configured, async (lab, drone) => {
      await expect(lab.command('emergency_stop', payload)).rejects.toThrow(/confirm/u);
      expect(drone.commands).toEqual([]);
    });
  });

  it('is not sent where another vehicle may receive it', async () => {
    await withDrone({ airborne: true }, configured, async (lab, drone) => {
      const other = new FakeDrone({ port: lab.port, uid: '00000000c0ffee02', uptime_ms: 100_000 });
      other.shareAddressOf(drone);
      await other.start();
      await lab.outbox.until(({ data }) => Array.isArray(data?.['alarms']));
      await expect(lab.command('emergency_stop', confirm)).rejects.toThrow(texts.id_shared(1));
      expect([drone.commands, other.commands]).toEqual([[], []]);
      other.stop();
    });
  });
});
