/** Reading the mission of a vehicle, over a real socket that loses frames. */
import { describe, expect, it } from 'vitest';
import { digestOf } from '../../../../../drivers/mavlink/missions/compare.ts';
import { planOf } from '../../../../../drivers/mavlink/missions/plan.ts';
import { texts } from '../../../../../drivers/mavlink/missions/texts.ts';
import { field } from '../../../../fakes/fake-drone.ts';
import { MissionDrone, missionItem } from '../../../../fakes/mission-drone.ts';
import { eventually } from '../../../../support/eventually.ts';
import { autopilots } from '../commands/commands-lab.ts';
import { withLab } from '../mavlink-lab.ts';
import { withMission } from './mission-lab.ts';

const name = 'Quadrotor 1';

describe.concurrent('download_mission', () => {
  it.each(autopilots)(
    'reads every item at a loss of every fifth frame in each direction, and ends the transfer: %s',
    async (autopilot) => {
      await withMission({ autopilot }, async (lab, drone) => {
        drone.mission = Array.from({ length: 40 }, (_, seq) => missionItem(seq));
        drone.lose_every = 5;
        drone.loss_in_pct = 20;
        const options = { remaining_ms: 60_000 };
        const result = await lab.command('download_mission', {}, options);
        const home = { lat: field.lat, lon: field.lon, alt_amsl_m: field.alt_amsl_m };
        expect(result).toEqual({
          kind: 'mission',
          items: autopilot === 'ardupilot' ? 39 : 40,
          digest: digestOf('mission', autopilot, drone.mission),
          plan: planOf('mission', drone.mission, { autopilot, home, vehicle_type: 2 }),
        });
        const { item_requests } = drone.missions;
        expect(new Set(item_requests).size).toBe(40);
        expect(item_requests.length).toBeGreaterThan(40);
      });
    },
    70_000,
  );

  it('reads an empty mission, and one that is being read by another station too', async () => {
    await withMission({ autopilot: 'px4' }, async (lab, drone) => {
      expect(await lab.command('download_mission')).toMatchObject({
        items: 0,
        plan: { mission: { items: [] } },
      });
      drone.mission = [missionItem(0), missionItem(1)];
      drone.missions.onItem = (seq) => {
        const other = missionItem(seq, { z: 999, target_system: 255, target_component: 190 });
        drone.send('MISSION_ITEM_INT', other);
      };
      const { plan } = await lab.command('download_mission');
      expect(plan).toMatchObject({ mission: { items: [{ Altitude: 50 }, { Altitude: 50 }] } });
      expect(drone.missions.acks.every((type) => type === 0)).toBe(true);
    });
  });

  it('takes no answer that is addressed to another station, and fails after a limited number of requests', async () => {
    await withMission({}, async (lab, drone) => {
      drone.mission = [missionItem(0)];
      drone.missions.answers_to = { sysid: 255, compid: 190 };
      await expect(lab.command('download_mission', {}, { remaining_ms: 20_000 })).rejects.toThrow(
        texts.unanswered(name, texts.the_count('mission'), 16),
      );
    });
  }, 40_000);

  it('never returns a part: a stop, the end of its time and a restart are named', async () => {
    await withMission({}, async (lab, drone) => {
      drone.mission = Array.from({ length: 20 }, (_, seq) => missionItem(seq));
      const stopping = new AbortController();
      drone.missions.onItem = (seq) => {
        if (seq === 5) stopping.abort();
      };
      const stopped = lab.command('download_mission', {}, { signal: stopping.signal });
      await expect(stopped).rejects.toThrow(texts.stopped(name));
      drone.missions.onItem = (seq) => {
        if (seq === 5) drone.withheld.add('MISSION_ITEM_INT');
      };
      const late = lab.command('download_mission', {}, { remaining_ms: 3_000 });
      await expect(late).rejects.toThrow(texts.too_late(name));
    });
    await withMission({ autopilot: 'px4', uptime_ms: 60_000 }, async (lab, drone) => {
      drone.mission = [missionItem(0), missionItem(1)];
      drone.missions.onItem = () => {
        drone.missions.onItem = undefined;
        drone.withheld.add('MISSION_ITEM_INT');
        void drone.reboot({ keep_port: true });
      };
      await expect(lab.command('download_mission')).rejects.toThrow(texts.interrupted(name));
    });
  });
});

const kit = { target_system: 245, target_component: 191 } as const;
const us = { sysid: 245, compid: 191 } as const;
const patient = { remaining_ms: 120_000 } as const;
const ends_upload = { ...kit, mission_type: 0, opaque_id: 0 } as const;

describe.concurrent('download_mission, disturbed on the way,', () => {
  it('begins again as often as a PX4 ends it for a request that comes late', async () => {
    await withMission({ autopilot: 'px4' }, async (lab, drone) => {
      drone.mission = Array.from({ length: 6 }, (_, seq) => missionItem(seq));
      let late = 5;
      drone.missions.onItem = (seq) => {
        if (seq !== 3 || late === 0) return;
        late -= 1;
        const fields = { target_system: 1, target_component: 1, mission_type: 0, seq: 0 };
        drone.missions.handle({ name: 'MISSION_REQUEST_INT', fields }, us, performance.now());
      };
      expect(await lab.command('download_mission', {}, patient)).toMatchObject({ items: 6 });
      expect(late).toBe(0);
    });
  });

  it('begins again when a PX4 has ended it for the silence of the link and answers no request any more', async () => {
    await withMission({ autopilot: 'px4' }, async (lab, drone) => {
      drone.mission = Array.from({ length: 6 }, (_, seq) => missionItem(seq));
      drone.missions.onItem = (seq) => {
        if (seq !== 3) return;
        drone.missions.onItem = undefined;
        drone.missions.restart();
      };
      expect(await lab.command('download_mission', {}, patient)).toMatchObject({ items: 6 });
    });
  });

  it.each(autopilots)('continues after a silence of the vehicle: %s', async (autopilot) => {
    await withMission({ autopilot }, async (lab, drone) => {
      drone.mission = Array.from({ length: 6 }, (_, seq) => missionItem(seq));
      drone.missions.onItem = (seq) => {
        if (seq === 3) drone.silent = true;
      };
      const reading = lab.command('download_mission', {}, patient);
      await eventually('the vehicle is silent', () => drone.silent);
      await lab.until('offline');
      drone.silent = false;
      drone.missions.onItem = undefined;
      expect(await reading).toMatchObject({ items: autopilot === 'px4' ? 6 : 5 });
    });
  });

  it('takes the late end of an earlier upload for what it is', async () => {
    await withMission({}, async (lab, drone) => {
      drone.mission = Array.from({ length: 6 }, (_, seq) => missionItem(seq));
      drone.missions.onItem = (seq) => {
        if (seq === 3) drone.send('MISSION_ACK', { ...ends_upload, type: 15 });
        if (seq === 3) drone.missions.onItem = undefined;
      };
      expect(await lab.command('download_mission', {}, patient)).toMatchObject({ items: 5 });
      drone.missions.intercept = ({ name: of }) => {
        if (of === 'MISSION_REQUEST_LIST') drone.send('MISSION_ACK', { ...ends_upload, type: 15 });
        if (of === 'MISSION_REQUEST_LIST') drone.missions.intercept = undefined;
        return false;
      };
      expect(await lab.command('download_mission', {}, patient)).toMatchObject({ items: 5 });
    });
  });

  it('reads no mixture when another station replaces the mission of a PX4 over another link', async () => {
    await withMission({ autopilot: 'px4' }, async (lab, drone) => {
      drone.mission = Array.from({ length: 4 }, (_, seq) => missionItem(seq));
      drone.missions.onItem = (seq) => {
        if (seq !== 2) return;
        drone.missions.onItem = undefined;
        drone.mission = Array.from({ length: 4 }, (_, each) => missionItem(each, { z: 20 }));
      };
      const { plan } = await lab.command('download_mission', {}, patient);
      expect(plan).toMatchObject({ mission: { items: Array.from({ length: 4 }, () => ({ Altitude: 20 })) } });
    });
  });

  it('reads the shorter mission that another station has stored meanwhile', async () => {
    await withMission({}, async (lab, drone) => {
      drone.mission = Array.from({ length: 6 }, (_, seq) => missionItem(seq));
      drone.missions.onItem = (seq) => {
        if (seq !== 3) return;
        drone.missions.onItem = undefined;
        drone.mission = [missionItem(0), missionItem(1, { z: 20 })];
      };
      const { items, plan } = await lab.command('download_mission', {}, patient);
      expect({ items, plan }).toMatchObject({ items: 1, plan: { mission: { items: [{ Altitude: 20 }] } } });
    });
  });
});

it.each(['fence', 'rally'] as const)(
  'waits for the home that its plan has, of a vehicle that was received only just now: %s',
  async (kind) => {
    await withLab(async (lab) => {
      const drone = new MissionDrone({ port: lab.port });
      try {
        drone.withheld.add('HOME_POSITION');
        drone.missions.stored[1] = [missionItem(0, { command: 5_003, param1: 200, mission_type: 1 })];
        drone.missions.stored[2] = [missionItem(0, { command: 5_100, mission_type: 2 })];
        await drone.start();
        await lab.until('online');
        drone.missions.onItem = () => void setTimeout(() => drone.withheld.clear(), 300);
        const result = await lab.command('download_mission', { kind }, { remaining_ms: 30_000 });
        expect(result).toMatchObject({
          items: 1,
          plan: { mission: { plannedHomePosition: [47.397742, 8.545594, 488] } },
        });
        expect(drone.missions.item_requests).toContain(0);
      } finally {
        drone.stop();
      }
    });
  },
);

describe('The plan of a mission', () => {
  const home = { lat: 47, lon: 8, alt_amsl_m: 500 };
  const jump = missionItem(2, { command: 177, frame: 2, param1: 1, param2: 3, x: 0, y: 0, z: 0 });

  it('has the home of an ArduPilot, which is its first item, and counts items as files do', () => {
    const items = [missionItem(0, { frame: 0, z: 488.5 }), missionItem(1, { frame: 6 }), jump];
    const plan = planOf('mission', items, { autopilot: 'ardupilot', vehicle_type: 2, home });
    expect(plan).toMatchObject({
      fileType: 'Plan',
      version: 1,
      mission: {
        firmwareType: 3,
        plannedHomePosition: [47.397742, 8.545594, 488.5],
        items: [
          {
            doJumpId: 1,
            command: 16,
            frame: 3,
            AltitudeMode: 1,
            params: [0, 0, 0, null, 47.397842, 8.545494, 50],
          },
          { doJumpId: 2, command: 177, frame: 2, params: [1, 3, 0, null, 0, 0, 0] },
        ],
      },
    });
  });

  it('of a PX4 counts from 1, also in jumps, and needs the reported home', () => {
    const items = [missionItem(0), missionItem(1), jump];
    expect(planOf('mission', items, { autopilot: 'px4', vehicle_type: 2, home })).toMatchObject({
      mission: {
        firmwareType: 12,
        plannedHomePosition: [47, 8, 500],
        items: [{ doJumpId: 1 }, { doJumpId: 2 }, { doJumpId: 3, params: [2, 3, 0, null, 0, 0, 0] }],
      },
    });
    expect(planOf('mission', items, { autopilot: 'px4', vehicle_type: 2, home: undefined })).toBe('no home');
  });
});
