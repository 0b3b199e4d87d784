/** Runs the driver with a drone that has missions, for the tests of this folder. */
import type { JsonObject } from '../../../../../src/contract/json.ts';
import { field } from '../../../../fakes/fake-drone.ts';
import { MissionDrone } from '../../../../fakes/mission-drone.ts';
import { type MavlinkLab, optionsAnd, type Run, withLab } from '../mavlink-lab.ts';

type DroneOptions = Partial<ConstructorParameters<typeof MissionDrone>[0]>;

/** Runs with a drone that has reported where it is and its mission. */
export async function withMission(
  about: DroneOptions,
  ...given: Run<[lab: MavlinkLab, drone: MissionDrone]>
): Promise<void> {
  const [options, run] = optionsAnd(given);
  await withLab(options, async (lab) => {
    const drone = new MissionDrone({ port: lab.port, airborne: true, ...about });
    try {
      await drone.start();
      await lab.sees('gps', ({ relative_alt_m }) => relative_alt_m !== null);
      await lab.sees('mission');
      await run(lab, drone);
    } finally {
      drone.stop();
    }
  });
}

type Params = readonly (number | null)[];

/** An item of a plan file. Places are metres north and east of the field. */
export function simpleItem(
  command: number,
  params: Params,
  about: Readonly<Record<string, unknown>> = {},
): Readonly<Record<string, unknown>> {
  return { type: 'SimpleItem', command, frame: 3, autoContinue: true, params: [...params], ...about };
}

const metres_per_degree = 111_195;

/** Degrees of a place that is so many metres away from the field. */
export function placeAt(north_m: number, east_m: number): readonly [lat: number, lon: number] {
  const round = (degrees: number): number => Math.round(degrees * 1e7) / 1e7;
  const lon_scale = Math.cos((field.lat * Math.PI) / 180);
  return [
    round(field.lat + north_m / metres_per_degree),
    round(field.lon + east_m / (metres_per_degree * lon_scale)),
  ];
}

export function waypoint(north_m: number, east_m: number, height_m = 30): Readonly<Record<string, unknown>> {
  return simpleItem(16, [0, 0, 0, null, ...placeAt(north_m, east_m), height_m]);
}

/** A plan file as QGroundControl writes it. */
export function planFile(
  items: readonly Readonly<Record<string, unknown>>[],
  parts: Readonly<Record<string, unknown>> = {},
): JsonObject {
  return {
    fileType: 'Plan',
    version: 1,
    groundStation: 'QGroundControl',
    mission: {
      version: 2,
      firmwareType: 12,
      vehicleType: 2,
      cruiseSpeed: 15,
      hoverSpeed: 5,
      globalPlanAltitudeMode: 1,
      plannedHomePosition: [field.lat, field.lon, field.alt_amsl_m],
      items: items.map((item, index) => ({ doJumpId: index + 1, ...item })),
    },
    geoFence: { version: 2, circles: [], polygons: [] },
    rallyPoints: { version: 2, points: [] },
    ...parts,
  };
}
