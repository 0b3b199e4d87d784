/** Flight logs of both autopilots: what the kit keeps is byte for byte what the vehicle has, whatever happens on the way. */
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { texts } from '../../../../../drivers/mavlink/logs/texts.ts';
import type { NewFile } from '../../../../../src/toolkit/driver/driver.ts';
import { sleep } from '../../../../../src/platform/time.ts';
import type { FakeDrone } from '../../../../fakes/fake-drone.ts';
import { StoredLogs } from '../../../../fakes/stored-logs.ts';
import { VehicleFiles } from '../../../../fakes/vehicle-files.ts';
import { eventually } from '../../../../support/eventually.ts';
import { withDirectory } from '../../../../support/temporary.ts';
import { autopilots } from '../commands/commands-lab.ts';
import { drone_key, mavlinkLab, type MavlinkLab } from '../mavlink-lab.ts';

const never = new AbortController().signal;
const begun_s = Date.UTC(2026, 10, 29, 12, 40) / 1_000;
const newest_bytes = 60_123;

/** Bytes without a period, so that a shifted part differs. */
function bytesOf(length: number, seed = 1): Uint8Array {
  let state = seed;
  return Uint8Array.from({ length }, () => (state = (state * 48_271) % 2_147_483_647) & 0xff);
}

interface Kept extends Omit<NewFile, 'content'> {
  readonly content: Uint8Array;
}

interface Scene {
  readonly lab: MavlinkLab;
  readonly drone: FakeDrone;
  readonly logs: StoredLogs;
  /** Resolves with the file that the kit has kept. */
  readonly keeps: () => Promise<Kept>;
  /** All that the kit has kept. */
  readonly kept: readonly Kept[];
}

interface About {
  readonly autopilot: 'ardupilot' | 'px4';
  readonly options?: object;
  readonly dir?: string;
}

async function withLogs(
  { autopilot, options = {}, dir }: About,
  run: (scene: Scene) => Promise<void>,
): Promise<void> {
  const at = async (state_dir: string): Promise<void> => {
    const kept: Kept[] = [];
    const add = async ({ content, ...file }: NewFile): Promise<string> => {
      if (!('path' in content)) throw new Error('a flight log is a file');
      kept.push({ ...file, content: await readFile(content.path) });
      return 'id';
    };
    const lab = await mavlinkLab({ ...options }, { files: { add }, state_dir });
    try {
      const drone = await lab.fly({ autopilot });
      const logs = new StoredLogs([
        { time_utc: begun_s - 90_000, content: bytesOf(9_000, 7) },
        { time_utc: begun_s, content: bytesOf(newest_bytes) },
      ]);
      drone.logs = logs;
      await lab.sees('sys_status', ({ armed }) => armed === false);
      const keeps = async (): Promise<Kept> => {
        await eventually('it is kept', () => kept.length > 0);
        const [file] = kept;
        if (!file) throw new Error('nothing was kept');
        return file;
      };
      await run({ lab, drone, logs, keeps, kept });
    } finally {
      await lab.stop();
    }
  };
  await (dir === undefined ? withDirectory(at) : at(dir));
}

const shown = (lab: MavlinkLab): string => JSON.stringify(lab.hub.drivers());
const order = { remaining_ms: 60_000 };
const isNoted = async (dir: string): Promise<boolean> =>
  (await readdir(join(dir, 'drones'))).some((name) => name.startsWith('logs-due'));
const isEqual = (kept: Kept, log: StoredLogs['logs'][number] | undefined): boolean =>
  Buffer.from(kept.content).equals(log?.content ?? Buffer.alloc(0));

describe.concurrent.each(autopilots)('download_log of %s', (autopilot) => {
  const first = autopilot === 'px4' ? 0 : 1;
  const end = autopilot === 'px4' ? 'ulg' : 'bin';

  it('transfers the newest log byte for byte, with its time, and leaves telemetry alone', async () => {
    await withLogs({ autopilot }, async ({ lab, logs, keeps }) => {
      expect(await lab.command('download_log', {}, order)).toEqual({
        id: first + 1,
        bytes: newest_bytes,
        at: '2026-11-29T12:40:00.000Z',
        state: 'transferring',
      });
      await expect(lab.command('download_log')).rejects.toThrow(/is being transferred/u);
      lab.outbox.clear();
      const kept = await keeps();
      const attitudes = lab.outbox.drafts.filter(({ channel }) => channel === lab.feed('attitude'));
      expect(attitudes.length).toBeGreaterThan(3);
      expect(kept).toMatchObject({
        kind: 'flight_log',
        asset_key: drone_key,
        at_ms: begun_s * 1_000,
        name: `Quadrotor 1 2026-11-29 12-40 log ${first + 1}.${end}`,
      });
      expect(isEqual(kept, logs.logs[1])).toBe(true);
      expect(logs.ended).toBeGreaterThan(0);
    });
  });

  it('lists the logs without the empty ones, and transfers one of them', async () => {
    await withLogs({ autopilot }, async ({ lab, logs, keeps }) => {
      logs.logs.push({ time_utc: 0, content: new Uint8Array() });
      expect(await lab.command('download_log', { list: true }, order)).toMatchObject({
        count: 2,
        logs: [{ id: first + 1 }, { id: first, bytes: 9_000 }],
      });
      await lab.command('download_log', { id: first }, order);
      expect(isEqual(await keeps(), logs.logs[0])).toBe(true);
    });
  });

  // A vehicle without the time of satellites dates each log 1980 or 2000 (mavlink/MAVSDK-Python#532, ArduPilot#9984, PX4-Autopilot#17097).
  it('tells logs apart that were begun before the vehicle knew the time', async () => {
    await withLogs({ autopilot }, async ({ lab, logs, keeps }) => {
      const time_utc = Date.UTC(1980, 0, 1) / 1_000;
      logs.logs.splice(0, 2, { time_utc, content: bytesOf(9_000, 7) }, { time_utc, content: bytesOf(9_000) });
      expect(await lab.command('download_log', { id: first + 1 }, order)).toMatchObject({ at: null });
      const kept = await keeps();
      expect(isEqual(kept, logs.logs[1])).toBe(true);
      expect(kept.at_ms).toBeGreaterThan(begun_s);
      expect(kept.name).not.toContain('1980');
    });
  });

  it('asks again for each part that is lost, of every fifth', { tags: 'long' }, async () => {
    await withLogs({ autopilot }, async ({ lab, drone, logs, keeps }) => {
      drone.lose_every = 5;
      await lab.command('download_log', {}, order);
      expect(isEqual(await keeps(), logs.logs[1])).toBe(true);
    });
  });

  it(
    'goes on where it was after an outage, a flight and a restart of the vehicle',
    { tags: 'long' },
    async () => {
      const options = { flight_logs: { bytes_per_s: 5_000 } };
      await withLogs({ autopilot, options }, async ({ lab, drone, logs, keeps }) => {
        await lab.command('download_log', {}, order);
        await eventually('the status shows it', () => /log \d+ is being transferred/u.test(shown(lab)));
        const interruptions = [
          async () => {
            drone.silent = true;
            await lab.until('offline');
            drone.silent = false;
          },
          async () => {
            drone.flight.armed = true;
            await sleep(10_000, never);
            drone.flight.armed = false;
          },
          async () => drone.reboot({ keep_port: true }),
        ];
        for (const interrupt of interruptions) {
          const asked = logs.asked.length;
          await eventually('some of it is there', () => logs.asked.length > asked + 2);
          await interrupt();
        }
        expect(isEqual(await keeps(), logs.logs[1])).toBe(true);
        expect(logs.asked.filter(({ ofs }) => ofs === 0)).toHaveLength(1);
      });
    },
  );

  it('transfers what was still written to the log meanwhile', async () => {
    await withLogs({ autopilot }, async ({ lab, logs, keeps }) => {
      await lab.command('download_log', {}, order);
      const [, newest] = logs.logs;
      await eventually('some of it is there', () => logs.asked.length > 1);
      if (newest) newest.content = Uint8Array.from([...newest.content, ...bytesOf(5_000, 3)]);
      expect(isEqual(await keeps(), newest)).toBe(true);
    });
  });

  it.each([
    { what: 'is the file that the vehicle serves', damage: 0, isRead: false },
    { what: 'differs from it, and is read as a file then (ArduPilot#18297)', damage: 1, isRead: true },
  ])('transfers what $what', { tags: 'long' }, async ({ damage, isRead }) => {
    await withLogs({ autopilot }, async ({ lab, drone, logs, keeps }) => {
      const [, newest] = logs.logs;
      const content = newest?.content ?? new Uint8Array();
      const path = autopilot === 'px4' ? '/fs/microsd/log/2026-11-29/12_40_00.ulg' : '/APM/LOGS/00000002.BIN';
      const files: Record<string, Uint8Array> = { [path]: content };
      for (let at = 1; at <= 40; at += 1) files[`${dirname(path)}/other ${at}`] = bytesOf(at);
      drone.files = new VehicleFiles(files);
      drone.files.lose_every = 7;
      if (newest) newest.content = newest.content.map((byte, at) => (at === 30_000 ? byte ^ damage : byte));
      await lab.command('download_log', {}, order);
      expect(Buffer.from((await keeps()).content).equals(content)).toBe(true);
      expect(lab.log.at('warn').includes(texts.differs)).toBe(isRead);
    });
  });

  it('comes by itself after a flight where that is configured', async () => {
    const options = { flight_logs: { after_flight: true } };
    await withLogs({ autopilot, options }, async ({ lab, drone, logs, keeps }) => {
      drone.flight.armed = true;
      await lab.sees('sys_status', ({ armed }) => armed === true);
      drone.flight.armed = false;
      expect(isEqual(await keeps(), logs.logs[1])).toBe(true);
    });
  });

  it(
    'comes by itself after each of some flights, also of those that begin before the last log is there',
    { tags: 'long' },
    async () => {
      const options = { flight_logs: { after_flight: true } };
      await withLogs({ autopilot, options }, async ({ lab, drone, logs, kept }) => {
        const flown: Uint8Array[] = [];
        for (let flight = 1; flight <= 4; flight += 1) {
          drone.flight.armed = true;
          await lab.sees('sys_status', ({ armed }) => armed === true);
          const content = bytesOf(30_000 + 5_000 * flight, flight + 10);
          flown.push(content);
          logs.logs.push({ time_utc: begun_s + 600 * flight, content });
          drone.flight.armed = false;
          lab.outbox.clear();
          await lab.sees('sys_status', ({ armed }) => armed === false);
          // Every third one follows while logs are transferred.
          if (flight % 3 !== 0) await eventually('all of it is there', () => kept.length === flown.length);
        }
        await eventually('all are there', () => kept.length === flown.length);
        const got = kept.map(({ content }) => Buffer.from(content));
        expect(flown.every((content) => got.some((each) => each.equals(content)))).toBe(true);
      });
    },
  );

  it('comes by itself where the kit was off at the landing, and once', { tags: 'long' }, async () => {
    await withDirectory(async (dir) => {
      const about = { dir, options: { flight_logs: { after_flight: true } } };
      await withLogs({ autopilot, ...about }, async ({ lab, drone }) => {
        drone.flight.armed = true;
        await lab.sees('sys_status', ({ armed }) => armed === true);
        await eventually('it is noted', async () => isNoted(dir));
      });
      await withLogs({ autopilot, ...about }, async ({ logs, keeps }) => {
        expect(isEqual(await keeps(), logs.logs[1])).toBe(true);
        await eventually('it is done', async () => !(await isNoted(dir)));
      });
    });
  });

  it('goes on after a restart of the kit', { tags: 'long' }, async () => {
    await withDirectory(async (dir) => {
      const about = { dir, options: { flight_logs: { bytes_per_s: 5_000 } } };
      await withLogs({ autopilot, ...about }, async ({ lab, logs }) => {
        await lab.command('download_log', {}, order);
        await eventually('some of it is there', () => logs.asked.length > 5);
      });
      await withLogs({ autopilot, ...about }, async ({ logs, keeps }) => {
        expect(isEqual(await keeps(), logs.logs[1])).toBe(true);
        expect(logs.asked[0]?.ofs).toBeGreaterThan(0);
      });
    });
  });

  it('is refused while the vehicle is armed, has no such log or none, or does not answer', async () => {
    await withLogs({ autopilot }, async ({ lab, drone, logs }) => {
      await expect(lab.command('download_log', { id: 77 }, order)).rejects.toThrow(
        texts.no_such_log('Quadrotor 1', 77),
      );
      logs.logs.length = 0;
      await expect(lab.command('download_log', {}, order)).rejects.toThrow(texts.no_logs('Quadrotor 1'));
      drone.logs = undefined;
      await expect(lab.command('download_log', {}, order)).rejects.toThrow(texts.no_answer('Quadrotor 1'));
      drone.flight.armed = true;
      lab.outbox.clear();
      await lab.sees('sys_status', ({ armed }) => armed === true);
      await expect(lab.command('download_log', {}, order)).rejects.toThrow(texts.armed);
    });
  });
});
