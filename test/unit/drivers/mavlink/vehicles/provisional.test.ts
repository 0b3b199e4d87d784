/** A vehicle before its hardware id is known: its key, its commands, and what is left of it afterwards. */
import { describe, expect, it } from 'vitest';
import { assetId } from '../../../../../src/contract/identity.ts';
import { channels } from '../../../../../src/contract/topics.ts';
import { eventually } from '../../../../support/eventually.ts';
import { kit_id } from '../../../../support/kit/hub-lab.ts';
import { drone_key, mavlinkLab, withLab } from '../mavlink-lab.ts';
import { texts } from '../../../../../drivers/mavlink/vehicles/texts.ts';
import { beat, clock, keyOf, lab, live, open, receive, registry, show, useRegistry } from './registry-lab.ts';

const provisional = 'mavlink:system-1';

describe.concurrent('A vehicle whose hardware id is lost on the radio', () => {
  it('has no command that the configured vehicle lacks, and leaves nothing behind when the id arrives', async () => {
    await withLab(
      { vehicles: { [drone_key]: { name: 'Falcon', commands: ['return_home'] } } },
      async (lab) => {
        const drone = await lab.fly();
        drone.camera = { vendor: 'Skyview', model: 'Z10' };
        drone.withheld.add('AUTOPILOT_VERSION');
        await lab.until('online', provisional);
        const offered = (name: string, key: string): boolean =>
          'command' in lab.hub.findCommand(assetId(kit_id, key), name);
        expect(offered('return_home', provisional)).toBe(true);
        expect(offered('arm', provisional)).toBe(false);
        drone.beatCamera();
        await lab.until('online', `${provisional}:component-100`);
        drone.withheld.clear();
        await lab.until('online');
        drone.beatCamera();
        await lab.until('online', `${drone_key}:component-100`);
        expect(lab.hub.assets().map(({ key }) => key)).toEqual([drone_key, `${drone_key}:component-100`]);
        expect(offered('return_home', drone_key)).toBe(true);
        expect(offered('arm', drone_key)).toBe(false);
      },
    );
  });

  it('is requested often enough that a radio that loses every third frame makes no second asset', async () => {
    await withLab(async (lab) => {
      const drone = await lab.fly();
      drone.lose_every = 3;
      await lab.until('online');
      expect(lab.hub.assets().map(({ key }) => key)).toEqual([drone_key]);
    });
  });
});

describe.concurrent('A vehicle without a hardware id', () => {
  it('is announced when it has answered, without waiting for more', async () => {
    await withLab(async (lab) => {
      const drone = await lab.fly({ uid: '0000000000000000' });
      await lab.until('online', provisional);
      // The second request comes 30 s after the answer to the first one, and each second without an answer.
      expect(drone.requests.filter((id) => id === 148)).toHaveLength(1);
    });
  });
});

describe.concurrent('What an earlier run announced before it knew the hardware id', () => {
  it('is removed when the vehicle is identified, with its children', async () => {
    const earlier = await mavlinkLab();
    const ghost = await earlier.fly({ uid: '0000000000000000' });
    await earlier.until('online', provisional);
    ghost.beatCamera();
    await earlier.until('online', `${provisional}:component-100`);
    const announced = [provisional, `${provisional}:component-100`].map((key) => {
      const channel = channels.asset(assetId(kit_id, key));
      return { channel, body: JSON.stringify(earlier.outbox.on(channel).at(-1)) };
    });
    await earlier.stop();
    const lab = await mavlinkLab({}, { announced });
    try {
      expect(lab.hub.assets()).toHaveLength(2);
      await lab.fly();
      await lab.until('online');
      await eventually('the earlier assets are removed', () => lab.hub.assets().length === 1);
      expect(lab.hub.assets().map(({ key }) => key)).toEqual([drone_key]);
    } finally {
      await lab.stop();
    }
  });
});

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
  await withLab({ offline_after_s: 2 }, async (drones) => {
    const drone = await drones.fly({ airborne: true });
    await drones.until('online');
    drone.silent = true;
    await drones.until('offline');
    drone.withheld.add('AUTOPILOT_VERSION');
    drone.silent = false;
    await drones.until('online');
    await expect(drones.command('set_mode', { mode: 'LOITER' })).rejects.toThrow(texts.identity_unconfirmed);
    expect(await drones.command('return_home')).toMatchObject({ flight_mode: 'RTL' });
    drone.withheld.clear();
    await expect
      .poll(async () => drones.command('set_mode', { mode: 'LOITER' }).catch(() => undefined), {
        timeout: 20_000,
      })
      .toMatchObject({ flight_mode: 'LOITER' });
    expect(drones.hub.assets().map(({ key }) => key)).toEqual([drone_key]);
  });
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
