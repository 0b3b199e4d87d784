/** Starting, pausing and resuming the mission that a vehicle has stored, and the feed `mission`. */
import { describe, expect, it } from 'vitest';
import { texts as command_texts } from '../../../../../drivers/mavlink/commands/texts.ts';
import { texts } from '../../../../../drivers/mavlink/missions/texts.ts';
import { StoredMissions } from '../../../../../drivers/mavlink/vehicles/stored-missions.ts';
import { blank } from '../../../../../drivers/mavlink/wire/messages.ts';
import { autopilots } from '../commands/commands-lab.ts';
import { placeAt, planFile, simpleItem, waypoint, withMission } from './mission-lab.ts';

const square = [waypoint(12, 0, 10), waypoint(12, 12, 10), waypoint(0, 12, 10), waypoint(0, 0, 10)];
const plan = planFile([simpleItem(22, [0, 0, 0, null, ...placeAt(0, 0), 10]), ...square]);
const digest = expect.stringMatching(/^[\da-f]{64}$/u) as string;

describe.concurrent('A stored mission', () => {
  it.each(autopilots)(
    'is started, paused, resumed and flown to its end, as its feed shows: %s',
    async (autopilot) => {
      await withMission({ autopilot, airborne: false }, async (lab, drone) => {
        const uploaded = await lab.command('upload_mission', { plan });
        const ready = {
          count: 5,
          current: 1,
          state: 'not_started',
          progress_pct: 0,
          digest: uploaded['digest'],
        };
        expect(await lab.sees('mission', (data) => data['digest'] !== null)).toMatchObject(ready);
        await expect(lab.command('start_mission')).rejects.toThrow(command_texts.not_armed);
        drone.flight.armed = true;
        await lab.sees('sys_status', ({ armed }) => armed === true);
        const flight_mode = autopilot === 'px4' ? 'MISSION' : 'AUTO';
        expect(await lab.command('start_mission', { digest: uploaded['digest'] })).toMatchObject({
          flight_mode,
          items: 5,
          item: 1,
          acknowledged: true,
        });
        await expect(lab.command('start_mission')).rejects.toThrow(texts.on_mission);
        await lab.sees('mission', ({ current, state }) => state === 'active' && current === 3);
        expect(await lab.command('pause_mission')).toMatchObject({ acknowledged: true });
        await lab.sees('mission', ({ state }) => state === 'paused');
        await expect(lab.command('pause_mission')).rejects.toThrow(texts.not_in_mission);
        const resumed = await lab.command('resume_mission');
        expect(resumed).toMatchObject({ flight_mode });
        // It flies on until its answer is confirmed.
        expect(resumed['item']).toBeGreaterThanOrEqual(3);
        const end = await lab.sees('mission', ({ state }) => state === 'complete');
        expect(end).toMatchObject({ count: 5, progress_pct: 100, digest: uploaded['digest'] });
        // Nothing but the command to arm would arm it.
        expect(drone.commands.some(({ command, param1 }) => command === 400 && param1 === 1)).toBe(false);
        expect(drone.commands.some(({ command }) => command === 300)).toBe(autopilot === 'ardupilot');
      });
    },
    60_000,
  );

  it.each(autopilots)('is left for a point and continued from there: %s', async (autopilot) => {
    await withMission({ autopilot, airborne: true }, async (lab, drone) => {
      const [lat, lon] = placeAt(-20, 0);
      const aside = { lat, lon, alt_m: 12 };
      await lab.command('upload_mission', { plan, allow_airborne: true });
      drone.flight.mode = 'LOITER';
      await lab.sees('sys_status', ({ flight_mode }) => flight_mode === 'LOITER');
      await expect(lab.command('reposition', aside)).rejects.toThrow(texts.not_in_mission);
      await lab.command('start_mission');
      await lab.sees('mission', ({ current, state }) => state === 'active' && Number(current) >= 2);
      const result = await lab.command('reposition', aside, { remaining_ms: 60_000 });
      const flight_mode = autopilot === 'px4' ? 'MISSION' : 'AUTO';
      expect(result).toMatchObject({ arrived: true, lat, lon, alt_datum: 'relative', flight_mode });
      expect(result['item']).toBeGreaterThanOrEqual(2);
      expect(drone.flight.mode).toBe('AUTO');
    });
  });

  it('is none for a PX4 that calls the removed one complete', () => {
    const stored = new StoredMissions();
    const report = { seq: 0, total: 0, mission_state: 5, mission_mode: 0 };
    stored.remember('mission', { count: 0, digest: '', items: [] }, 0);
    stored.receive({ ...report, mission_id: 0, fence_id: 0, rally_points_id: 0 }, 'px4', 0);
    expect(stored.feed()).toMatchObject({ count: 0, state: 'no_mission', progress_pct: null });
  });

  it.each(autopilots)('is started from its first item after a pause: %s', async (autopilot) => {
    await withMission({ autopilot, airborne: true }, async (lab, drone) => {
      await lab.command('upload_mission', { plan, allow_airborne: true });
      drone.missions.current = drone.missions.first + 3;
      drone.flight.mode = 'LOITER';
      await lab.sees('sys_status', ({ flight_mode }) => flight_mode === 'LOITER');
      expect(await lab.command('start_mission')).toMatchObject({ item: 1 });
    });
  });

  it('shows its progress by the items that are reached where the vehicle reports no state', async () => {
    await withMission({ airborne: false }, async (lab, drone) => {
      await lab.command('upload_mission', { plan });
      drone.stopStream('MISSION_CURRENT');
      const about = { ...blank('MISSION_CURRENT'), total: 5 };
      drone.send('MISSION_CURRENT', { ...about, seq: 2 });
      expect(await lab.sees('mission', ({ state }) => state === null)).toMatchObject({ progress_pct: null });
      drone.send('MISSION_ITEM_REACHED', { seq: 1 });
      await lab.sees('mission', ({ state, progress_pct }) => state === null && progress_pct === 20);
      drone.send('MISSION_CURRENT', { ...about, seq: 5 });
      drone.send('MISSION_ITEM_REACHED', { seq: 5 });
      await lab.sees('mission', ({ progress_pct }) => progress_pct === 100);
    });
  });

  it('is started where the status is requested rarely', async () => {
    const streams = { status_hz: 0.1 };
    await withMission({ airborne: true }, { streams }, async (lab, drone) => {
      await lab.command('upload_mission', { plan, allow_airborne: true });
      drone.missions.current = drone.missions.first + 3;
      drone.flight.mode = 'LOITER';
      await lab.sees('sys_status', ({ flight_mode }) => flight_mode === 'LOITER');
      expect(await lab.command('start_mission')).toMatchObject({ item: 1 });
    });
  });

  it('is not set back to its first item after a pilot has started it', async () => {
    await withMission({ airborne: true }, async (lab, drone) => {
      await lab.command('upload_mission', { plan, allow_airborne: true });
      drone.missions.current = drone.missions.first + 3;
      drone.flight.mode = 'LOITER';
      await lab.sees('sys_status', ({ flight_mode }) => flight_mode === 'LOITER');
      drone.missions.intercept = ({ name }) => {
        if (name !== 'MISSION_REQUEST_LIST' || drone.flight.mode === 'AUTO') return false;
        drone.flight.mode = 'AUTO';
        // The request is lost and repeated: the heartbeat with the new mode arrives before its answer.
        const about = { type: 2, autopilot: 3, system_status: 4, mavlink_version: 3 };
        drone.send('HEARTBEAT', { ...about, base_mode: 1 | 128, custom_mode: 3 });
        return true;
      };
      await expect(lab.command('start_mission')).rejects.toThrow(texts.on_mission);
      expect(drone.missions.received).not.toContain('MISSION_SET_CURRENT');
      expect(drone.missions.current).toBe(drone.missions.first + 3);
    });
  });

  it('is not started when there is none, or another one than expected', async () => {
    await withMission({ airborne: false }, async (lab, drone) => {
      drone.flight.armed = true;
      await lab.sees('sys_status', ({ armed }) => armed === true);
      await expect(lab.command('start_mission')).rejects.toThrow(texts.no_mission);
      const other = 'a'.repeat(64);
      await expect(lab.command('start_mission', { digest: other })).rejects.toThrow(texts.digest_differs);
      await lab.command('upload_mission', { plan });
      await expect(lab.command('start_mission', { digest: other })).rejects.toThrow(texts.digest_differs);
      expect(drone.commands).toEqual([]);
    });
  });

  it.each(autopilots)(
    'is not started when another station has replaced it over another link: %s',
    async (autopilot) => {
      await withMission({ autopilot, airborne: false }, async (lab, drone) => {
        const { digest: uploaded } = await lab.command('upload_mission', { plan });
        drone.mission = drone.mission.map((item) => ({ ...item, z: item.z + 90 }));
        drone.flight.armed = true;
        await lab.sees('sys_status', ({ armed }) => armed === true);
        for (const start of ['start_mission', 'resume_mission'])
          await expect(lab.command(start, { digest: uploaded })).rejects.toThrow(texts.digest_differs);
        expect(drone.commands).toEqual([]);
        expect(drone.flight.mode).toBe('LOITER');
      });
    },
  );

  it('has no digest once another station has changed it, or the vehicle has restarted', async () => {
    await withMission({ airborne: false, uptime_ms: 60_000 }, async (lab, drone) => {
      await lab.command('upload_mission', { plan });
      await lab.sees('mission', (data) => data['digest'] !== null);
      const station = { target_system: 255, target_component: 190 };
      drone.send('MISSION_ACK', { ...station, type: 0, mission_type: 0, opaque_id: 77 });
      lab.outbox.clear();
      expect(await lab.sees('mission')).toMatchObject({ digest: null, count: 5 });
      await lab.command('download_mission');
      await lab.sees('mission', (data) => data['digest'] !== null);
      lab.outbox.clear();
      await drone.reboot({ keep_port: true });
      await lab.sees('mission', (data) => data['digest'] === null);
      expect(await lab.command('download_mission')).toMatchObject({ digest });
    });
  }, 40_000);
});
