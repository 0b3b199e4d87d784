/** Uploading missions, fences and rally points over real sockets that lose frames, read back by an independent client. */
import { describe, expect, it } from 'vitest';
import { autopilotVersion } from '../../../../../drivers/mavlink/sim/telemetry.ts';
import { ackText, texts } from '../../../../../drivers/mavlink/missions/texts.ts';
import type { MissionDrone } from '../../../../fakes/mission-drone.ts';
import { openRawClient, type RawItem } from '../../../../support/mavlink-raw-client.ts';
import { eventually } from '../../../../support/eventually.ts';
import { autopilots } from '../commands/commands-lab.ts';
import { placeAt, planFile, simpleItem, waypoint, withMission } from './mission-lab.ts';

const name = 'Quadrotor 1';
const on_the_ground = { airborne: false } as const;
const long = { remaining_ms: 120_000 };
/** A take-off, a square with a photo and a faster leg, one more round of it, and the way home. */
const items = [
  simpleItem(22, [0, 0, 0, null, ...placeAt(0, 0), 20]),
  ...Array.from({ length: 16 }, (_, index) => waypoint(10 * (index % 8), 7 * index, 20 + index / 4)),
  simpleItem(178, [1, 6.5, -1, 0, 0, 0, 0], { frame: 2 }),
  simpleItem(19, [12, 0, 0, null, ...placeAt(50, 50), 40]),
  simpleItem(177, [3, 2, 0, 0, 0, 0, 0], { frame: 2 }),
  simpleItem(2000, [0, 0, 1, 0, 0, 0, 0], { frame: 2 }),
  simpleItem(20, [0, 0, 0, 0, 0, 0, 0], { frame: 2 }),
];
const corners = [placeAt(200, -200), placeAt(200, 200), placeAt(-200, 200), placeAt(-200, -200)];
const parts = {
  geoFence: {
    version: 2,
    polygons: [
      { inclusion: true, polygon: corners, version: 1 },
      { inclusion: false, polygon: [placeAt(90, 90), placeAt(90, 110), placeAt(110, 100)], version: 1 },
    ],
    circles: [{ inclusion: false, circle: { center: placeAt(-100, -100), radius: 25.5 }, version: 1 }],
  },
  rallyPoints: {
    version: 2,
    points: [
      [...placeAt(20, 20), 30],
      [...placeAt(-20, 20), 25],
    ],
  },
};
const plan = planFile(items, parts);

function lossy(drone: MissionDrone): void {
  drone.lose_every = 5;
  drone.loss_in_pct = 20;
}

/** The command, place, height and meaningful parameters of an item, as the plan has them. */
function essence(item: RawItem): readonly unknown[] {
  const isPlaced = item.command < 95 && item.command !== 20;
  const place = isPlaced ? [item.x, item.y, Math.round(item.z * 100) / 100] : [];
  return [
    item.command,
    ...place,
    ...(item.command === 177 || item.command === 178 ? item.params.slice(1, 2) : []),
  ];
}

const expected = items.map((item) => {
  const { command, params } = item as { command: number; params: readonly (number | null)[] };
  const [, two, , , lat, lon, alt] = params;
  const isPlaced = command < 95 && command !== 20;
  const place = isPlaced
    ? [Math.round((lat ?? 0) * 1e7), Math.round((lon ?? 0) * 1e7), Math.round((alt ?? 0) * 100) / 100]
    : [];
  return [command, ...place, ...(command === 177 || command === 178 ? [two] : [])];
});

// A PX4 accepts a mission that it will not fly, and says so afterwards (mavlink/MAVSDK#1111).
describe.concurrent('upload_mission of what the vehicle accepts and then finds fault with', () => {
  it.each(autopilots)('has its words in the result: %s', async (autopilot) => {
    await withMission({ ...on_the_ground, autopilot }, async (lab, drone) => {
      const words = 'Mission rejected: First waypoint too far away: 1638 m';
      drone.sendText('Battery 1 is low', 4);
      await lab.sees('messages');
      const uploading = lab.command('upload_mission', { plan }, long);
      await eventually('it has the items', () => (drone.missions.stored[0] ?? []).length > 1);
      drone.sendText(words, 2);
      drone.sendText('Mission: 1 WP', 6);
      expect(await uploading).toMatchObject({ acknowledged: true, vehicle_texts: [words] });
    });
  });
});

describe.concurrent('upload_mission', () => {
  it.each(autopilots)(
    'stores a mission, a fence and rally points at a loss of every fifth frame, as an independent client reads them: %s',
    { tags: 'long', timeout: 240_000 },
    async (autopilot) => {
      const client = await openRawClient();
      try {
        await withMission({ ...on_the_ground, autopilot }, async (lab, drone) => {
          drone.alsoTo(client.port);
          lossy(drone);
          const mission = await lab.command('upload_mission', { plan }, long);
          expect(mission).toMatchObject({
            kind: 'mission',
            items: items.length,
            not_uploaded: ['fence', 'rally'],
          });
          expect(await lab.command('upload_mission', { plan, kind: 'fence' }, long)).toMatchObject({
            items: 8,
          });
          expect(await lab.command('upload_mission', { plan, kind: 'rally' }, long)).toMatchObject({
            items: 2,
          });
          const own = autopilot === 'ardupilot' ? 1 : 0;
          const read = await client.read(1, 0);
          expect(read.slice(own).map(essence)).toEqual(expected);
          const jump = read.find(({ command }) => command === 177);
          // The third item of the plan.
          expect(jump?.params[0]).toBe(2 + own);
          const fence = await client.read(1, 1);
          const vertex = (command: number, count: number) => (place: readonly [number, number]) => [
            command,
            count,
            Math.round(place[0] * 1e7),
            Math.round(place[1] * 1e7),
          ];
          expect(fence.map(({ command, params, x, y }) => [command, params[0], x, y])).toEqual([
            ...corners.map(vertex(5001, 4)),
            ...[placeAt(90, 90), placeAt(90, 110), placeAt(110, 100)].map(vertex(5002, 3)),
            vertex(5004, 25.5)(placeAt(-100, -100)),
          ]);
          const rally = await client.read(1, 2);
          expect(rally.map(({ command, x, z, frame }) => [command, x, z, frame])).toEqual([
            [5100, Math.round(placeAt(20, 20)[0] * 1e7), 30, 3],
            [5100, Math.round(placeAt(-20, 20)[0] * 1e7), 25, 3],
          ]);
          // And the plan that is read back has the same digests and areas.
          const back = await lab.command('download_mission', { kind: 'fence' }, long);
          expect(back['plan']).toMatchObject({ geoFence: parts.geoFence });
          const again = await lab.command('download_mission', {}, long);
          expect(again['digest']).toBe(mission['digest']);
        });
      } finally {
        client.close();
      }
    },
  );

  it.each(autopilots)(
    'completes although frames come twice and one request is out of order: %s',
    async (autopilot) => {
      await withMission({ ...on_the_ground, autopilot }, async (lab, drone) => {
        drone.twice = true;
        drone.missions.wrong_at = 4;
        expect(await lab.command('upload_mission', { plan }, long)).toMatchObject({
          items: items.length,
          acknowledged: true,
        });
      });
    },
    60_000,
  );

  it('takes late messages of an earlier upload for what they are', async () => {
    await withMission(on_the_ground, async (lab, drone) => {
      const to = { target_system: 245, target_component: 191, mission_type: 0 };
      drone.missions.intercept = ({ name: message }) => {
        if (message !== 'MISSION_COUNT') return false;
        drone.missions.intercept = undefined;
        drone.send('MISSION_ACK', { ...to, type: 0, opaque_id: 0 });
        drone.send('MISSION_REQUEST', { ...to, seq: 3 });
        return false;
      };
      const received: number[] = [];
      drone.missions.onReceived = (seq) => received.push(seq);
      expect(await lab.command('upload_mission', { plan }, long)).toMatchObject({
        items: items.length,
        acknowledged: true,
      });
      // A busy vehicle asks for an item again.
      const order = received.filter((seq, at) => seq !== received[at - 1]);
      expect(order).toEqual(Array.from({ length: items.length + 1 }, (_, seq) => seq));
    });
  });

  it('names what the autopilot did not keep', async () => {
    await withMission(on_the_ground, async (lab) => {
      const turned = simpleItem(16, [0, 0, 0, 90, ...placeAt(10, 10), 20]);
      expect(await lab.command('upload_mission', { plan: planFile([turned]) })).toMatchObject({
        not_kept: [texts.differs('mission.items[0]', { field: 'param4', sent: 90, stored: 0 })],
      });
    });
  });

  it('fails when the vehicle stores something else, and names the difference', async () => {
    await withMission(on_the_ground, async (lab, drone) => {
      drone.missions.tamper = (item) => (item.seq === 2 ? { ...item, z: 90 } : item);
      const short = planFile([waypoint(10, 10), waypoint(20, 10), waypoint(30, 10)]);
      const differs = texts.differs('mission.items[1]', { field: 'altitude', sent: 30, stored: 90 });
      const holds = texts.holds('mission', { held: 3, same: 1, all: 3 });
      await expect(lab.command('upload_mission', { plan: short })).rejects.toThrow(`${differs}; ${holds}`);
    });
  });

  it('fails in the words of the vehicle when it refuses an item, and names what it holds', async () => {
    await withMission({ ...on_the_ground, autopilot: 'px4' }, async (lab, drone) => {
      drone.missions.refuses = { type: 3, at: 1 };
      const short = planFile([waypoint(10, 10), waypoint(20, 10)]);
      const refused = texts.refused(name, texts.the_upload('mission'), ackText(3));
      drone.missions.onReceived = (seq) => {
        if (seq === 1) drone.sendText('Mission rejected: no', 4);
      };
      const upload = lab.command('upload_mission', { plan: short });
      const holds = texts.holds('mission', { held: 0, same: 0, all: 2 });
      await expect(upload).rejects.toThrow(
        new RegExp(`^${escaped(refused)}.*: Mission rejected: no; ${escaped(holds)}$`, 'u'),
      );
    });
  });
});

function escaped(text: string): string {
  return text.replaceAll(/[()[\].?*+^$]/gu, String.raw`\$&`);
}

describe.concurrent('An upload that is cut in the middle', () => {
  it.each([
    // An ArduPilot stores each item as it arrives, and has dropped the rest at the start.
    { autopilot: 'ardupilot', held: 3, same: 1 } as const,
    { autopilot: 'px4', held: 5, same: 0 } as const,
  ])(
    'is reported with what the vehicle holds now: $autopilot',
    async ({ autopilot, held, same }) => {
      await withMission({ ...on_the_ground, autopilot }, async (lab, drone) => {
        const old = planFile(Array.from({ length: 5 }, (_, index) => waypoint(-10 * index, 0)));
        await lab.command('upload_mission', { plan: old }, long);
        const own = autopilot === 'ardupilot' ? 1 : 0;
        drone.missions.silent_at = own + 1;
        const short = planFile([waypoint(10, 10), waypoint(20, 10), waypoint(30, 10)]);
        const upload = lab.command('upload_mission', { plan: short }, { remaining_ms: 60_000 });
        setTimeout(() => {
          drone.missions.silent_at = undefined;
          // The vehicle has given up meanwhile.
          drone.missions.restart();
        }, 13_000);
        const holds = texts.holds('mission', { held, same, all: 3 });
        await expect(upload).rejects.toThrow(holds);
        expect(await lab.sees('mission', ({ digest }) => digest === null)).toBeTruthy();
      });
    },
    90_000,
  );

  it('by a restart of the vehicle is reported with what it holds after it', async () => {
    await withMission({ ...on_the_ground, uptime_ms: 60_000 }, async (lab, drone) => {
      drone.missions.onReceived = (seq) => {
        if (seq !== 2) return;
        drone.missions.onReceived = undefined;
        // It takes a while until it takes items again.
        drone.missions.intercept = ({ name: message }) =>
          message === 'MISSION_COUNT' || message === 'MISSION_ITEM_INT';
        void drone.reboot({ keep_port: true });
      };
      const short = planFile([waypoint(10, 10), waypoint(20, 10), waypoint(30, 10)]);
      const upload = lab.command('upload_mission', { plan: short }, { remaining_ms: 60_000 });
      await expect(upload).rejects.toThrow(texts.interrupted(name));
    });
  }, 70_000);

  it('by a cancellation ends with an unknown outcome, and the vehicle is told to end it', async () => {
    await withMission({ ...on_the_ground, autopilot: 'px4' }, async (lab, drone) => {
      const stopping = new AbortController();
      drone.missions.onReceived = (seq) => {
        if (seq === 3) stopping.abort();
      };
      const upload = lab.command('upload_mission', { plan }, { ...long, signal: stopping.signal });
      await expect(upload).rejects.toThrow(/after [34] of \d+ items: .*; outcome unknown$/u);
      await eventually('the end of the transfer', () => drone.missions.acks.includes(15));
      expect(drone.mission).toHaveLength(0);
    });
  });
});

describe.concurrent('What the vehicle may not get', () => {
  it('is refused while it is airborne, unless that is allowed', async () => {
    await withMission({ airborne: true }, async (lab, drone) => {
      const short = planFile([waypoint(10, 10)]);
      await expect(lab.command('upload_mission', { plan: short })).rejects.toThrow(texts.underway);
      await expect(lab.command('clear_mission')).rejects.toThrow(texts.underway);
      expect(drone.missions.received).toEqual([]);
      expect(await lab.command('upload_mission', { plan: short, allow_airborne: true })).toMatchObject({
        items: 1,
      });
    });
  });

  it('ends when the vehicle takes off meanwhile', async () => {
    await withMission(on_the_ground, async (lab, drone) => {
      drone.missions.onReceived = (seq) => {
        if (seq !== 5) return;
        drone.missions.silent_at = 0;
        drone.flight.armed = true;
        drone.flight.height_m = 20;
      };
      const upload = lab.command('upload_mission', { plan }, { remaining_ms: 20_000 });
      await expect(upload).rejects.toThrow(texts.underway);
    });
  }, 40_000);

  it('is not removed once the vehicle takes off, however often the request was lost', async () => {
    await withMission(on_the_ground, async (lab, drone) => {
      await lab.command('upload_mission', { plan }, long);
      drone.missions.intercept = ({ name: message }) => {
        if (message !== 'MISSION_CLEAR_ALL') return false;
        drone.flight.armed = true;
        drone.flight.height_m = 20;
        return true;
      };
      const clearing = lab.command('clear_mission', {}, { remaining_ms: 20_000 });
      await expect(clearing).rejects.toThrow(`${texts.underway}; ${name} still has`);
      expect(drone.mission).toHaveLength(items.length + 1);
    });
  }, 40_000);

  it('is refused where the vehicle reports no support for it', async () => {
    await withMission(on_the_ground, async (lab, drone) => {
      drone.send('AUTOPILOT_VERSION', { ...autopilotVersion(drone.uid), capabilities: 0x4 });
      await eventually('its capabilities are known', async () => {
        const upload = lab.command('upload_mission', { plan, kind: 'rally' });
        const sentence = await upload.then(() => '', String);
        return sentence.includes(texts.unsupported(name, 'rally'));
      });
    });
  });
});

describe.concurrent('clear_mission', () => {
  it.each(autopilots)(
    'removes what is stored at a loss of every fifth frame, and reads that it is gone: %s',
    async (autopilot) => {
      await withMission({ ...on_the_ground, autopilot }, async (lab, drone) => {
        lossy(drone);
        for (const kind of ['mission', 'fence', 'rally']) {
          await lab.command('upload_mission', { plan, kind }, long);
          expect(await lab.command('clear_mission', { kind }, long)).toMatchObject({ kind, items: 0 });
        }
        expect(drone.missions.stored).toEqual([[], [], []]);
      });
    },
    240_000,
  );

  it('fails when something is left, and in the words of a refusal', async () => {
    await withMission(on_the_ground, async (lab, drone) => {
      await lab.command('upload_mission', { plan }, long);
      drone.missions.forgetful = true;
      await expect(lab.command('clear_mission')).rejects.toThrow(
        texts.not_cleared(name, 'mission', items.length),
      );
      drone.missions.refuses = { type: 3 };
      const refused = texts.refused(name, texts.the_clearing('mission'), ackText(3));
      await expect(lab.command('clear_mission', {}, { remaining_ms: 8_000 })).rejects.toThrow(refused);
    });
  }, 60_000);
});
