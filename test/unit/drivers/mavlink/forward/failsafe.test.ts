/** The failsafe for the loss of the pilot's station, which shares the link of the kit. */
import { expect, it } from 'vitest';
import { eventually } from '../../../../support/eventually.ts';
import { withEndpoints } from './forward-lab.ts';
import { freePort } from '../../../../support/ports.ts';

it('The loss of the pilot behind an endpoint starts the failsafe, which the heartbeats of the kit do not hide', async () => {
  const port = await freePort();
  await withEndpoints([{ kind: 'udp_listen', port, name: 'gcs' }], async ({ lab, drone, station }) => {
    drone.gcs_failsafe_ms = 1_500;
    const pilot = await station({ kind: 'udp', port });
    await lab.sees('sys_status', ({ flight_mode }) => flight_mode === 'AUTO');
    pilot.beat();
    await eventually('the vehicle receives the pilot', () => drone.beats.some(({ sysid }) => sysid === 255));
    // Then the pilot's station is lost, and the kit goes on.
    await eventually('the vehicle returns home', () => drone.flight.mode === 'RTL');
    await lab.sees('sys_status', ({ flight_mode }) => flight_mode === 'RTL');
    await eventually('the text is logged', () =>
      lab.log.lines.some(({ facts }) => JSON.stringify(facts).includes('GCS Failsafe')),
    );
    const beats = drone.beats.length;
    await eventually('the kit goes on', () => drone.beats.length > beats);
    expect(new Set(drone.beats.slice(beats).map(({ sysid }) => sysid))).toEqual(new Set([245]));
    expect(drone.commands).toEqual([]);
    expect(drone.flight.mode).toBe('RTL');
  });
});
