/** A vehicle over two links: what makes it safer goes over both, and what either shows counts. */
import { describe, expect, it } from 'vitest';
import type { FakeDrone } from '../../../../fakes/fake-drone.ts';
import { freePort } from '../../../../support/ports.ts';
import { eventually } from '../../../../support/eventually.ts';
import { type MavlinkLab, withLab } from '../mavlink-lab.ts';
import { near } from '../commands/commands-lab.ts';

const poshold = 16;
const identity = 148;

/** Shows its mode at once, without waiting for the next heartbeat. */
function showMode(drone: FakeDrone, custom_mode: number): void {
  const about = { type: 2, autopilot: 3, system_status: 4, mavlink_version: 3 };
  drone.send('HEARTBEAT', { ...about, base_mode: 1 | 128, custom_mode });
}

/** Runs `fn` with a copter that is received over two links; `cut` ends the one in use, in both directions. */
async function withTwoLinks(
  { airborne = true }: { readonly airborne?: boolean },
  fn: (lab: MavlinkLab, drone: FakeDrone, cut: () => void) => Promise<void>,
): Promise<void> {
  const [first, second] = [await freePort(), await freePort()];
  const links = [first, second].map((port) => ({ kind: 'udp_listen', host: '127.0.0.1', port }));
  await withLab({ links }, async (lab) => {
    const drone = await lab.fly({ port: first, airborne, uptime_ms: 60_000 });
    await lab.until('online');
    drone.alsoTo(second);
    // Each link is identified by its own answer.
    await eventually(
      'received over both links',
      () => drone.requests.filter((id) => id === identity).length > 1,
    );
    drone.flight.armed = true;
    await lab.sees(
      'sys_status',
      ({ armed, ekf_ok, pre_arm_check }) => armed === true && ekf_ok !== null && pre_arm_check !== null,
    );
    await lab.sees('gps', ({ relative_alt_m }) => relative_alt_m !== null);
    // Sent after its answer about its identity over the second link.
    lab.outbox.clear();
    await lab.sees('attitude');
    await fn(lab, drone, () => drone.onlyTo(second));
  });
}

describe.concurrent('A command that makes a vehicle safer', () => {
  it.each([
    { name: 'return_home', shows: { flight_mode: 'RTL' } },
    { name: 'land', shows: { flight_mode: 'LAND' } },
    { name: 'hold', shows: { flight_mode: 'BRAKE' } },
    { name: 'pause_mission', shows: { flight_mode: 'BRAKE' } },
    { name: 'disarm', airborne: false, shows: { armed: false } },
  ])('reaches it over the other link when the one in use has just died: $name', async (about) => {
    await withTwoLinks(about, async (lab, drone, cut) => {
      cut();
      expect(await lab.command(about.name)).toEqual({ ...about.shows, acknowledged: true });
      expect(drone.commands).toHaveLength(1);
    });
  });

  it('goes over both links at once, and is done once', async () => {
    await withTwoLinks({}, async (lab, drone) => {
      expect(await lab.command('return_home')).toEqual({ flight_mode: 'RTL', acknowledged: true });
      await eventually('both copies arrived', () => drone.commands.length === 2);
      expect(await lab.command('land')).toEqual({ flight_mode: 'LAND', acknowledged: true });
      await eventually('both copies arrived', () => drone.commands.length === 4);
    });
  });

  it('is not sent again when the other link shows that a pilot has taken over', async () => {
    await withTwoLinks({}, async (lab, drone, cut) => {
      drone.react = () => {
        cut();
        drone.odd_mode = poshold;
        showMode(drone, poshold);
        return undefined;
      };
      const failed = lab.command('return_home', {}, { remaining_ms: 5_000 });
      await expect(failed).rejects.toThrow(/outcome unknown$/u);
      // At most the copies of the first moment, one over each link.
      expect(drone.commands.length).toBeLessThanOrEqual(2);
    });
  });

  it('has an unknown outcome when the other link shows that the vehicle has restarted', async () => {
    await withTwoLinks({ airborne: false }, async (lab, drone, cut) => {
      drone.react = () => {
        cut();
        void drone.reboot({ keep_port: true });
        return undefined;
      };
      await expect(lab.command('disarm')).rejects.toThrow(/restarted, or .*; outcome unknown$/u);
    });
  });
});

describe.concurrent('A command that is sent once', () => {
  it('goes over one of two links, and what the other one shows completes it when the first has died', async () => {
    await withTwoLinks({}, async (lab, drone, cut) => {
      drone.react = (_command, execute) => {
        cut();
        execute();
        return undefined;
      };
      expect(await lab.command('goto_waypoint', near)).toMatchObject({ acknowledged: false });
      expect(drone.commands).toHaveLength(1);
    });
  });

  it('is followed to its arrival over the other link', async () => {
    await withTwoLinks({}, async (lab, drone, cut) => {
      const target = { ...near, lat: drone.flight.lat + 0.0003, lon: drone.flight.lon };
      const payload = { ...target, wait_for_arrival: true };
      const arrived = lab.command('goto_waypoint', payload, { remaining_ms: 60_000, progress: cut });
      expect(await arrived).toMatchObject({ arrived: true });
      expect(drone.commands).toHaveLength(1);
    });
  });
});
