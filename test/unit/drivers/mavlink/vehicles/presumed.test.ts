/** A vehicle that is received again after a silence: it is presumed to be the one that was there, until it reports its hardware id. */
import { describe, expect, it } from 'vitest';
import { texts } from '../../../../../drivers/mavlink/vehicles/texts.ts';
import { drone_key, withLab } from '../mavlink-lab.ts';
import { beat, clock, keyOf, lab, live, open, receive, registry, show, useRegistry } from './registry-lab.ts';

const silence_ms = 10_000;
const peer = '10.0.0.1:14550';

function fallSilent(): void {
  clock.now_ms += silence_ms;
  registry.tick(clock.now_ms);
}

const online = () =>
  lab.hub
    .assets()
    .filter(({ status }) => status === 'online')
    .map(({ key }) => key);

it('A vehicle that never repeats its hardware id after a silence is itself, and gets what makes it safer and nothing else', async () => {
  await withLab(
    async (drones) => {
      const drone = await drones.fly({ airborne: true });
      await drones.until('online');
      drone.silent = true;
      await drones.until('offline');
      drone.withheld.add('AUTOPILOT_VERSION');
      drone.silent = false;
      await drones.until('online');
      await expect(drones.command('set_mode', { mode: 'LOITER' })).rejects.toThrow(
        texts.identity_unconfirmed,
      );
      expect(await drones.command('return_home')).toMatchObject({ flight_mode: 'RTL' });
      drone.withheld.clear();
      await expect
        .poll(async () => drones.command('set_mode', { mode: 'LOITER' }).catch(() => undefined), {
          timeout: 20_000,
        })
        .toMatchObject({ flight_mode: 'LOITER' });
      expect(drones.hub.assets().map(({ key }) => key)).toEqual([drone_key]);
    },
    { offline_after_s: 2 },
  );
});

describe('After a silence', () => {
  useRegistry();

  it.for([1, 2] as const)('a vehicle is there with its first frame, in MAVLink %i', (version) => {
    open();
    live(peer, 1, 7);
    fallSilent();
    expect(online()).toEqual([]);
    receive('10.0.0.1:14999', { sysid: 1, compid: 1, version }, 'HEARTBEAT', beat);
    expect(online()).toEqual([keyOf(7)]);
  });

  it('another one behind the same radio is its own asset as soon as it says so', () => {
    open();
    live(peer, 1, 7);
    fallSilent();
    receive(peer, 1, 'HEARTBEAT', beat);
    live(peer, 1, 8, 2);
    expect(online()).toEqual([keyOf(8)]);
    fallSilent();
    receive(peer, 1, 'HEARTBEAT', beat);
    // The one that was there last.
    expect(online()).toEqual([keyOf(8)]);
  });

  it('one link that confirms the vehicle is used rather than one that does not', () => {
    open();
    live('/dev/ttyS1', 1, 7);
    fallSilent();
    receive('/dev/ttyS1', 1, 'HEARTBEAT', beat);
    live('/dev/ttyS2', 1, 7);
    receive('/dev/ttyS1', 1, 'HEARTBEAT', beat);
    registry.tick(clock.now_ms);
    const active = registry.routes.filter(({ isActive }) => isActive).map(({ peer: at }) => at);
    expect(active).toEqual(['/dev/ttyS2']);
    expect(online()).toEqual([keyOf(7)]);
  });

  it('what is received from another address, or with another id, is not presumed to be it', () => {
    open();
    live(peer, 1, 7);
    fallSilent();
    receive('10.0.0.2:14550', 1, 'HEARTBEAT', beat);
    receive(peer, 2, 'HEARTBEAT', beat);
    receive(peer, { sysid: 1, compid: 2 }, 'HEARTBEAT', beat);
    registry.tick(clock.now_ms);
    expect(online()).toEqual([]);
    show(peer, 1, 7);
    expect(online()).toEqual([keyOf(7)]);
  });
});
