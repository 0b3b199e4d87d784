/** Another station that transfers with the same vehicle at the same time, as the sources of both autopilots describe it. */
import { describe, expect, it } from 'vitest';
import { texts } from '../../../../../drivers/mavlink/missions/texts.ts';
import type { MissionMessage, Station } from '../../../../../drivers/mavlink/sim/missions.ts';
import { CommandRefused } from '../../../../../src/platform/errors.ts';
import { missionItem, type MissionDrone } from '../../../../fakes/mission-drone.ts';
import { eventually } from '../../../../support/eventually.ts';
import { autopilots } from '../commands/commands-lab.ts';
import { planFile, waypoint, withMission } from './mission-lab.ts';

const name = 'Quadrotor 1';
const other: Station = { sysid: 255, compid: 190 };
const to = { target_system: 1, target_component: 1, mission_type: 0 } as const;
const plan = planFile([waypoint(10, 0, 20), waypoint(20, 0, 20)]);
const on_the_ground = { airborne: false } as const;
/** Home is item 0 of an ArduPilot. */
const theirs = [missionItem(0), missionItem(1), missionItem(2)];

/** Uploads that the other station has begun, by drone. */
const said = new WeakMap<MissionDrone, number>();

function says(drone: MissionDrone, message: MissionMessage): void {
  if (message.name === 'MISSION_COUNT') said.set(drone, (said.get(drone) ?? 0) + 1);
  drone.missions.handle(message, other, performance.now());
}

/** It begins, and again and again, so that the vehicle does not give up. Returns a function that stops this. */
function keepsUploading(drone: MissionDrone): () => void {
  const begin = (): void =>
    says(drone, { name: 'MISSION_COUNT', fields: { ...to, count: theirs.length, opaque_id: 0 } });
  begin();
  const again = setInterval(begin, 500);
  return () => clearInterval(again);
}

function endsUpload(drone: MissionDrone): void {
  for (const item of theirs) says(drone, { name: 'MISSION_ITEM_INT', fields: { ...item, ...to } });
}

/** Resolves when our station has tried to begin, again after a refusal. */
async function hasTried(drone: MissionDrone, message: MissionMessage['name'], times: number): Promise<void> {
  await eventually(`${message} has arrived ${times} times`, () => {
    const theirs_of_it = message === 'MISSION_COUNT' ? (said.get(drone) ?? 0) : 0;
    return drone.missions.received.filter((each) => each === message).length - theirs_of_it >= times;
  });
}

describe.concurrent('Another station that uploads to the same vehicle', () => {
  it.each(autopilots)(
    'ends first: our upload follows and is what the vehicle holds: %s',
    async (autopilot) => {
      await withMission({ ...on_the_ground, autopilot }, async (lab, drone) => {
        const stop = keepsUploading(drone);
        const uploading = lab.command('upload_mission', { plan }, { remaining_ms: 60_000 });
        await hasTried(drone, 'MISSION_COUNT', 3);
        stop();
        endsUpload(drone);
        expect(await uploading).toMatchObject({ items: 2, acknowledged: true });
        expect(drone.mission.at(-1)).toMatchObject({ command: 16, z: 20 });
      });
    },
  );

  it.each(autopilots)(
    'and does not end has our upload refused, and nothing is changed: %s',
    async (autopilot) => {
      await withMission({ ...on_the_ground, autopilot }, async (lab, drone) => {
        drone.mission = theirs;
        const stop = keepsUploading(drone);
        try {
          const refused = lab.command('upload_mission', { plan }, { remaining_ms: 8_000 });
          await expect(refused).rejects.toThrow(new CommandRefused(texts.busy(name, 255)));
        } finally {
          stop();
        }
        expect(drone.missions.received).not.toContain('MISSION_ITEM_INT');
      });
    },
  );

  it.each(autopilots)('has our download wait, and read what it has stored: %s', async (autopilot) => {
    await withMission({ ...on_the_ground, autopilot }, async (lab, drone) => {
      const stop = keepsUploading(drone);
      const reading = lab.command('download_mission', {}, { remaining_ms: 60_000 });
      await hasTried(drone, 'MISSION_REQUEST_LIST', 2);
      stop();
      endsUpload(drone);
      expect(await reading).toMatchObject({ items: autopilot === 'px4' ? 3 : 2 });
    });
  });

  it.each(autopilots)('has our removal wait: %s', async (autopilot) => {
    await withMission({ ...on_the_ground, autopilot }, async (lab, drone) => {
      const stop = keepsUploading(drone);
      const clearing = lab.command('clear_mission', {}, { remaining_ms: 60_000 });
      await hasTried(drone, 'MISSION_CLEAR_ALL', 2);
      stop();
      endsUpload(drone);
      expect(await clearing).toMatchObject({ items: 0 });
    });
  });
});

describe.concurrent('Another station that reads from a PX4', () => {
  it('ends first: our upload follows', async () => {
    await withMission({ ...on_the_ground, autopilot: 'px4' }, async (lab, drone) => {
      drone.mission = theirs;
      says(drone, { name: 'MISSION_REQUEST_LIST', fields: to });
      const uploading = lab.command('upload_mission', { plan }, { remaining_ms: 60_000 });
      await hasTried(drone, 'MISSION_COUNT', 5);
      says(drone, { name: 'MISSION_ACK', fields: { ...to, type: 0, opaque_id: 0 } });
      expect(await uploading).toMatchObject({ items: 2, acknowledged: true });
    });
  });
});
