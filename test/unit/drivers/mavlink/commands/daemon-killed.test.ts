/**
 * Every command on every autopilot when the process of the daemon is killed while it runs: what the next run reports is what the
 * table of the driver's README says, and nothing is sent again that may not run again.
 */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { assetId } from '../../../../../src/contract/identity.ts';
import { jsonObject, type JsonObject } from '../../../../../src/contract/json.ts';
import { texts } from '../../../../../src/kit/tasks/texts.ts';
import type { MissionDrone } from '../../../../fakes/mission-drone.ts';
import { type Broker, startMosquitto } from '../../../../support/brokers/broker.ts';
import { eventually } from '../../../../support/eventually.ts';
import type { Cloud } from '../../../../support/kit/cloud.ts';
import { withKit } from '../../../../support/kit/kit.ts';
import { peerMissing } from '../../../../support/peers.ts';
import {
  type Flown,
  flown,
  killed,
  payloadFor,
  prepare,
  type Row,
  rowsOf,
  type Sees,
  startVehicle,
  stores,
  untilKnown,
  writtenCell,
} from './outcomes-lab.ts';
import { freePort } from '../../../../support/ports.ts';

interface Subject {
  readonly row: Row;
  readonly drone: MissionDrone;
  readonly asset_id: string;
  readonly task_id: string;
  /** Messages of the command that arrived. */
  arrived: number;
}

/** Lets the vehicle take the command without an answer. */
function hush(subject: Subject): void {
  const { row, drone } = subject;
  const note = (): void => {
    subject.arrived += 1;
  };
  if (row.name === 'get_params') {
    drone.withheld.add('PARAM_VALUE');
    drone.onParameters = note;
  } else if (stores.has(row.name)) {
    drone.missions.intercept = () => {
      note();
      return true;
    };
  } else {
    drone.react = () => {
      note();
      return undefined;
    };
  }
}

/** Lets it answer again, and goes on counting. */
function unhush({ drone }: Subject): void {
  drone.react = undefined;
  drone.missions.intercept = undefined;
  drone.withheld.clear();
}

function seenBy(cloud: Cloud, asset_id: string): Sees {
  return async (feed, fits = () => true) =>
    cloud.until(
      `${feed} of ${asset_id}`,
      ({ channel, data }) => channel === `feed/${asset_id}/${feed}` && data !== null && fits(data),
    );
}

async function dispatch(cloud: Cloud, { task_id, asset_id, row }: Subject): Promise<void> {
  const about = { task_id, asset_id, command_name: row.name, payload: payloadFor(row) };
  await cloud.send({ kind: 'task', task_id }, { ...about, created_at: new Date().toISOString() });
}

async function endOf(cloud: Cloud, { task_id, row }: Subject): Promise<JsonObject> {
  const { data } = await cloud.until(
    `the end of ${row.label}`,
    ({ channel, data: report }) =>
      channel === `task/${task_id}` &&
      (report?.['status'] === 'failed' || report?.['status'] === 'completed'),
  );
  return data ?? {};
}

function outcomeOf({ status, result }: JsonObject): string {
  if (status === 'completed') return 'again';
  const error = Object.entries(jsonObject.parse(result)).find(([key]) => key === 'error')?.[1];
  return error === texts.interrupted ? 'unknown' : JSON.stringify(error);
}

describe.skipIf(peerMissing('mosquitto'))('Every command when the daemon is killed', () => {
  let broker: Broker;
  beforeAll(async () => {
    broker = await startMosquitto();
  });
  afterAll(async () => {
    await broker.stop();
  });

  it.each(flown)(
    'ends as its table says: $label',
    async (vehicle: Flown) => {
      const rows = rowsOf(vehicle.commands).filter(({ name }) => !vehicle.lacks.includes(name));
      await withKit({ rehearsed: false }, async (kit) => {
        const port = await freePort();
        const links = [{ kind: 'udp_listen', host: '127.0.0.1', port }];
        await kit.configure({
          broker: { url: broker.url },
          drivers: [{ driver: 'mavlink', options: { links } }],
        });
        const cloud = await kit.listen(broker.url);
        const daemon = await kit.start();
        const subjects: Subject[] = [];
        try {
          for (const [index, row] of rows.entries()) {
            const uid = (0xc0ff_ee00 + index).toString(16).padStart(16, '0');
            const drone = await startVehicle(vehicle, row, { port, uid, sysid: index + 1 });
            const asset_id = assetId(kit.kit_id, `mavlink:${uid}`);
            subjects.push({ row, drone, asset_id, task_id: randomUUID(), arrived: 0 });
          }
          await Promise.all(
            subjects.map(async ({ drone, row, asset_id }) => {
              const sees = seenBy(cloud, asset_id);
              await untilKnown(vehicle, sees);
              await prepare(drone, row, sees);
            }),
          );
          for (const each of subjects) hush(each);
          await Promise.all(subjects.map(async (each) => dispatch(cloud, each)));
          await eventually('each has its command', () => subjects.every(({ arrived }) => arrived > 0));
          await daemon.end('SIGKILL');
          const sent = subjects.map(({ drone }) => drone.commands.length);
          for (const each of subjects) unhush(each);
          await kit.start();
          const ends = await Promise.all(subjects.map(async (each) => endOf(cloud, each)));
          const found = subjects.map(({ row }, index) => [row.label, outcomeOf(ends[index] ?? {})]);
          const written = await Promise.all(
            subjects.map(async ({ row }) => [row.label, await writtenCell(row, vehicle.label, killed)]),
          );
          expect(found).toEqual(written);
          expect(subjects.map(({ drone }) => drone.commands.length)).toEqual(sent);
        } finally {
          for (const { drone } of subjects) drone.stop();
        }
      });
    },
    120_000,
  );
});
