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
import { aborted, every } from '../../src/platform/time.ts';

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

/** A drone in memory that can be lost and found: the peer of `memoryDriver`. */
export interface MemoryDevice {
  present: boolean;
  readonly driver: Driver;
  /** Modes that were commanded. */
  readonly modes: string[];
}

export function memoryDevice(): MemoryDevice {
  const modes: string[] = [];
  const setMode = defineCommand({
    name: 'set_mode',
    description: 'Changes the flight mode.',
    risk_level: 'medium',
    input: z.strictObject({ mode: z.enum(['GUIDED', 'LOITER']) }),
    handle: async ({ mode }) => {
      modes.push(mode);
      return { mode };
    },
  });
  const device: MemoryDevice = {
    present: false,
    modes,
    driver: defineDriver({
      name: 'memory',
      feeds: droneFeeds,
      options: z.strictObject({ poll_ms: z.number().min(1).default(10) }),
      run: async ({ poll_ms }, host) => {
        const ask = (): void => {
          if (!device.present) throw new DeviceUnreachable('the drone is away');
        };
        ask();
        const sink = host.announce(drone(), [setMode, command('arm')]);
        sink.publish('gps', fix());
        await new Promise<void>((resolve, reject) => {
          const poll = new AbortController();
          const end = (): void => {
            poll.abort();
            resolve();
          };
          host.signal.addEventListener('abort', end, { once: true });
          every(poll_ms, poll.signal, () => {
            try {
              ask();
              sink.publish('gps', fix());
            } catch (error) {
              poll.abort();
              host.signal.removeEventListener('abort', end);
              reject(error instanceof Error ? error : new Error(String(error)));
            }
          });
        });
      },
    }),
  };
  return device;
}
