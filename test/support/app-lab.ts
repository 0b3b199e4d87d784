/** The parts of the daemon that a reload changes, joined as `app.ts` joins them: real configuration, hub and log. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { onTestFinished, vi } from 'vitest';
import { z } from 'zod';
import { DriverInstances } from '../../src/kit/app/driver-instances.ts';
import { commandPolicy, PacePolicy } from '../../src/kit/app/policy.ts';
import { LiveConfig, reload, telemetryPace } from '../../src/kit/app/reload.ts';
import { type Config, readConfig } from '../../src/kit/config/config.ts';
import type { DriverList } from '../../src/kit/config/drivers.ts';
import { droneFeeds } from '../../src/contract/drone-feeds.ts';
import { assetId } from '../../src/contract/identity.ts';
import type { LinkType } from '../../src/contract/kit.ts';
import { defineCommand, noInput } from '../../src/toolkit/driver/command.ts';
import { defineDriver, type Driver } from '../../src/toolkit/driver/driver.ts';
import { DeviceRejected } from '../../src/platform/errors.ts';
import { createLog } from '../../src/platform/log/log.ts';
import { aborted } from '../../src/platform/time.ts';
import { drone, type DroneHost, fix } from '../fakes/scripted-driver.ts';
import { hubLab, kit_id } from './kit/hub-lab.ts';
import { withDirectory } from './temporary.ts';

const options = z.strictObject({
  keys: z.array(z.string()).default([]),
  does: z.enum(['serve', 'reject', 'hang']).default('serve'),
});

type Sink = ReturnType<DroneHost['announce']>;

/** What the runs of the drivers did: `red starts`, `red ends`. */
class Runs {
  readonly events: string[] = [];
  /** Of the newest run, by key of the asset. */
  readonly sinks = new Map<string, Sink>();

  /** Announces a drone for each of its keys, as its options tell. */
  driver(name: string): Driver {
    return defineDriver({
      name,
      feeds: droneFeeds,
      options,
      run: async ({ keys, does }, host) => {
        this.events.push(`${keys.join('+') || name} starts`);
        if (does === 'reject') throw new DeviceRejected('password refused');
        for (const key of keys) this.sinks.set(key, host.announce(drone(key), commands));
        await aborted(host.signal);
        if (does === 'hang') await new Promise<never>(() => undefined);
        this.events.push(`${keys.join('+') || name} ends`);
      },
    });
  }
}

/** A driver that takes other keys while it runs; `tries` is returned as what it tries again. */
function fleetDriver(events: string[]): Driver {
  return defineDriver({
    name: 'fleet',
    feeds: droneFeeds,
    options: options.extend({ tries: z.array(z.string()).default([]) }),
    devices: 'keys',
    run: async ({ keys }, host, onOptions) => {
      events.push(`fleet ${keys.join('+')} starts`);
      for (const key of keys) host.announce(drone(key));
      onOptions((next) => {
        events.push(`fleet takes ${next.keys.join('+')}`);
        return next.tries;
      });
      await aborted(host.signal);
    },
  });
}

const about = { description: '', input: noInput, handle: async () => ({}) };
const commands = [
  defineCommand({ ...about, name: 'land', risk_level: 'low' }),
  defineCommand({ ...about, name: 'arm', risk_level: 'high' }),
];

/** Starts the parts with the text of a configuration file, which needs no `kit_id`. They end with the test. */
export async function startAppLab(text: string) {
  const runs = new Runs();
  const all = [runs.driver('drones'), runs.driver('others'), fleetDriver(runs.events)];
  const list: DriverList = all.map((driver) => ({ name: driver.name, load: async () => driver }));
  const read = async (body: string): Promise<Config> =>
    withDirectory(async (dir) => {
      const file = join(dir, 'config.yaml');
      await writeFile(file, `kit_id: ${kit_id}\n${body}`);
      return {
        ...(await readConfig(file, { drivers: list, credentials_dir: undefined })),
        file: 'config.yaml',
      };
    });
  const lines: string[] = [];
  const config = await read(text);
  const log = createLog({ ...config.log, readable: false, out: { write: (line) => lines.push(line) } });
  const live = new LiveConfig(config);
  const link: { type: LinkType | undefined } = { type: undefined };
  const pace = new PacePolicy(
    () => live.config,
    () => link.type,
  );
  const lab = hubLab({
    configured: config.drivers.map(({ name }) => name),
    rates: pace.rates(),
    ...telemetryPace(config),
    allow: (asset, command) => commandPolicy(live.config.commands)(asset, command),
  });
  const { hub, outbox } = lab;
  const instances = new DriverInstances(hub, log);
  instances.start(config.drivers);
  await pass(0);
  const stop = async (): Promise<void> => {
    await instances.stop();
    await lab.stop();
    log.close();
  };
  onTestFinished(stop);
  return {
    hub,
    outbox,
    log,
    live,
    pace,
    instances,
    link,
    read,
    events: runs.events,
    states: () => Object.fromEntries(hub.drivers().map(({ name, state }) => [name, state])),
    idOf: (key: string) => assetId(kit_id, key),
    /** Publishes positions of this drone for three seconds, and returns how many left in the last one of them. */
    async gpsRateOf(key: string): Promise<number> {
      const channel = `feed/${assetId(kit_id, key)}/gps`;
      let before = 0;
      for (let sent = 0; sent < 150; sent += 1) {
        if (sent === 100) before = outbox.on(channel).length;
        runs.sinks.get(key)?.publish('gps', fix(47 + sent / 1_000));
        await pass(20);
      }
      return outbox.on(channel).length - before;
    },
    /** The lines that were logged since, oldest first. */
    logged: () =>
      lines.splice(0).map((line) => {
        const { time: _, ...rest } = entry.parse(JSON.parse(line));
        return rest;
      }),
    reload: async (body: string) => reload(await read(body), { live, instances, hub, pace, log }),
    stop,
  };
}

const entry = z.looseObject({ time: z.string(), level: z.string(), msg: z.string() });

/** Lets fake time pass. */
export async function pass(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
}
