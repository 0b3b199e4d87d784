/** Drivers that live in memory and misbehave on demand: what the hub must survive. */
import { z } from 'zod';
import { droneFeeds } from '../../src/contract/drone-feeds.ts';
import { type Command, defineCommand, noInput } from '../../src/toolkit/driver/command.ts';
import {
  type AssetDescription,
  defineDriver,
  type Driver,
  type DriverHost,
} from '../../src/toolkit/driver/driver.ts';
import { DeviceUnreachable } from '../../src/platform/errors.ts';
import { aborted } from '../../src/platform/time.ts';

export type DroneHost = DriverHost<typeof droneFeeds>;
export type Script = (host: DroneHost, run_number: number) => Promise<void>;

/** A driver that does what the script says; `run_number` counts its runs from 1. */
export function scriptedDriver(script: Script): Driver {
  let runs = 0;
  return defineDriver({
    name: 'scripted',
    feeds: droneFeeds,
    options: z.strictObject({}),
    run: async (_options, host) => {
      runs += 1;
      await script(host, runs);
    },
  });
}

export function drone(asset_key = 'drone-1', more: Partial<AssetDescription> = {}): AssetDescription {
  return { asset_key, name: `Drone ${asset_key}`, type: 'drone', protocol: 'mavlink', ...more };
}

export function fix(lat = 47.1) {
  return { lat, lon: 8.5, alt_m: 480, ground_speed: 3, heading: 90 };
}

export function command(name: string, more: Partial<Command> = {}): Command {
  const plain = defineCommand({
    name,
    description: `Does ${name}.`,
    risk_level: 'low',
    input: noInput,
    handle: async () => ({ done: name }),
  });
  return { ...plain, ...more };
}

export const scripts = {
  wellBehaved: async (host) => {
    host.announce(drone(), [command('arm')]);
    await aborted(host.signal);
  },
  throwsAtOnce: () => {
    throw new DeviceUnreachable('nobody answers at 10.0.0.7');
  },
  endsEarly: async () => undefined,
  neverAnswers: async (host) => aborted(host.signal),
  hangsOnStop: async (host) => {
    host.announce(drone('hanging'));
    await new Promise<never>(() => undefined);
  },
} satisfies Record<string, Script>;
