/** A driver for tests of the whole daemon: drones that do what the payload of a command says, and write down that they did. */
import { appendFileSync, existsSync } from 'node:fs';
import { z } from 'zod';
import { droneFeeds } from '../../../src/contract/drone-feeds.ts';
import {
  type Command,
  type CommandContext,
  defineCommand,
  noInput,
} from '../../../src/toolkit/driver/command.ts';
import { type AssetSink, defineDriver } from '../../../src/toolkit/driver/driver.ts';
import { CommandRefused, DeviceRejected } from '../../../src/platform/errors.ts';
import { aborted, every, sleep } from '../../../src/platform/time.ts';
import { monotonic_us } from '../witness.ts';

const rehearsalOptions = z.strictObject({
  /** A line is added to this file for each command that a drone carries out. */
  effects: z.string().min(1),
  keys: z.array(z.string().min(1)).default(['falcon']),
  /** Positions a second of each drone; 0: none. */
  gps_hz: z.number().min(0).max(50).default(0),
  /** The device refuses us while this file exists. */
  refused_while: z.string().min(1).optional(),
  /** Does not hear that it has to stop. */
  deaf: z.boolean().default(false),
});

export const rehearsal = defineDriver({
  name: 'rehearsal',
  feeds: droneFeeds,
  options: rehearsalOptions,
  run: async ({ effects, keys, gps_hz, refused_while, deaf }, host) => {
    if (refused_while && existsSync(refused_while)) throw new DeviceRejected('wrong password');
    const sinks = keys.map((asset_key) => {
      const done = (what: string): void => appendFileSync(effects, `${asset_key} ${what}\n`);
      const about = { asset_key, name: `Drone ${asset_key}`, type: 'drone', protocol: 'mavlink' } as const;
      return host.announce(about, commandsOf(done));
    });
    if (gps_hz > 0) publishPositions(sinks, gps_hz, host.signal);
    await (deaf ? new Promise<never>(() => undefined) : aborted(host.signal));
  },
});

function commandsOf(done: (what: string) => void): Command[] {
  const work = async (ms: number, { signal }: CommandContext): Promise<void> => {
    await sleep(ms, signal);
    if (signal.aborted) throw signal.reason;
  };
  return [
    defineCommand({
      name: 'work',
      description: 'Takes its time.',
      risk_level: 'low',
      timeout_ms: 60_000,
      input: z.strictObject({ ms: z.int().min(0).max(60_000) }),
      handle: async ({ ms }, context) => {
        done('work');
        context.progress('at it', 50);
        await work(ms, context);
        return { worked_ms: ms };
      },
    }),
    defineCommand({
      name: 'land',
      description: 'Comes down.',
      risk_level: 'high',
      safety: true,
      input: noInput,
      handle: async () => {
        done('land');
        return { landed: true };
      },
    }),
    defineCommand({
      name: 'arm',
      description: 'Is refused by the drone.',
      risk_level: 'medium',
      input: noInput,
      handle: async () => {
        throw new CommandRefused('the drone refuses to arm: compass not calibrated');
      },
    }),
  ];
}

/** A circle, so that no two positions are the same. */
function publishPositions(
  sinks: readonly AssetSink<typeof droneFeeds>[],
  hz: number,
  signal: AbortSignal,
): void {
  let step = 0;
  every(1_000 / hz, signal, () => {
    step += 1;
    const [lat, lon] = [47 + Math.sin(step / 100) / 100, 8 + Math.cos(step / 100) / 100];
    for (const sink of sinks) {
      const fix = { lat, lon, alt_m: 480, ground_speed: 10, heading: step % 360, sent_us: monotonic_us() };
      sink.publish('gps', fix);
    }
  });
}
