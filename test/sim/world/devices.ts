/** The devices of a story, which do not notice that the kit is killed, and the driver through which the kit sees them. */
import { z } from 'zod';
import { assetId } from '../../../src/contract/identity.ts';
import { droneFeeds } from '../../../src/contract/drone-feeds.ts';
import type { JsonObject } from '../../../src/contract/json.ts';
import { type Command, type CommandContext, defineCommand } from '../../../src/toolkit/driver/command.ts';
import {
  type AssetSink,
  defineDriver,
  type Driver,
  type DriverHost,
} from '../../../src/toolkit/driver/driver.ts';
import { CommandRefused } from '../../../src/platform/errors.ts';
import { aborted, every, sleep } from '../../../src/platform/time.ts';
import type { Rng } from './rng.ts';
import type { World } from './scheduler.ts';

const feeds = { ...droneFeeds, motion: z.looseObject({ detected: z.boolean(), timestamp: z.string() }) };
type Feeds = typeof feeds;

/** One run of a command on the machine. */
export interface Run {
  /** What the dispatch said, to tell tasks apart. */
  readonly n: number;
  readonly command: string;
  /** True time. */
  readonly began_ms: number;
  readonly kit: string;
  ended: 'done' | 'refused' | 'stopped' | undefined;
}

interface Device {
  readonly key: string;
  is_there: boolean;
  online: boolean;
  /** Counts what was published, so that every value tells its order. */
  published: number;
  sink: AssetSink<Feeds> | undefined;
}

export interface DevicesParts {
  readonly world: World;
  readonly rng: Rng;
  readonly kit_id: string;
  readonly count: number;
  readonly feed_every_ms: number;
  readonly event_every_ms: number;
}

export class Devices {
  readonly runs: Run[] = [];
  readonly list: readonly Device[];
  /** Nobody moves any more. */
  quiet = false;
  readonly #parts: DevicesParts;
  #host: DriverHost<Feeds> | undefined;

  constructor(parts: DevicesParts) {
    this.#parts = parts;
    this.list = Array.from({ length: parts.count }, (_, index) => ({
      key: `drone-${index}`,
      is_there: true,
      online: true,
      published: 0,
      sink: undefined,
    }));
  }

  idOf(device: Device): string {
    return assetId(this.#parts.kit_id, device.key);
  }

  /** The driver for the next start of the kit. */
  driver(): Driver {
    return defineDriver({
      name: 'simulated',
      feeds,
      options: z.looseObject({}),
      run: async (_options, host) => this.#run(host),
    });
  }

  /** Says much at once: `count` messages of feeds, every `event_share`-th of them an event. */
  burst(count: number, event_share: number, chars = 0): void {
    for (let i = 0; i < count; i++) {
      const device = this.list[i % this.list.length];
      if (!device?.sink || !device.is_there) continue;
      if (event_share > 0 && i % event_share === 0) this.#event(device, chars);
      else this.#feed(device, chars);
    }
  }

  /** The device goes away or comes back. */
  setOnline(device: Device, online: boolean): void {
    device.online = online;
    device.sink?.setOnline(online, 'out of reach');
  }

  /** The device is not part of the kit any more, or it is again. */
  setThere(device: Device, is_there: boolean): void {
    if (device.is_there === is_there) return;
    device.is_there = is_there;
    if (!is_there) device.sink?.remove();
    else if (this.#host) this.#announce(this.#host, device);
  }

  async #run(host: DriverHost<Feeds>): Promise<void> {
    const { feed_every_ms, event_every_ms } = this.#parts;
    this.#host = host;
    for (const device of this.list) if (device.is_there) this.#announce(host, device);
    if (feed_every_ms > 0)
      every(feed_every_ms, host.signal, () => this.#each((device) => this.#feed(device)));
    if (event_every_ms > 0)
      every(event_every_ms, host.signal, () => this.#each((device) => this.#event(device)));
    await aborted(host.signal);
    if (this.#host === host) this.#host = undefined;
  }

  #each(act: (device: Device) => void): void {
    if (this.quiet) return;
    for (const device of this.list) if (device.is_there && device.online) act(device);
  }

  #announce(host: DriverHost<Feeds>, device: Device): void {
    const about = { asset_key: device.key, name: device.key, type: 'drone', protocol: 'mavlink' } as const;
    device.sink = host.announce(about, this.#commands());
    if (!device.online) device.sink.setOnline(false, 'out of reach');
  }

  #feed(device: Device, chars = 0): void {
    const n = (device.published += 1);
    const feed = n % 3 === 0 ? 'battery' : 'gps';
    const more = chars > 0 ? { padding: 'x'.repeat(chars) } : {};
    if (feed === 'gps') {
      const fix = { lat: 47, lon: 8, alt_m: n, ground_speed: 1, heading: 0, n, ...more };
      device.sink?.publish('gps', fix);
    } else device.sink?.publish('battery', { voltage: 12, current: 1, remaining_pct: 50, n, ...more });
  }

  #event(device: Device, chars = 0): void {
    const n = (device.published += 1);
    const more = chars > 0 ? { padding: 'x'.repeat(chars) } : {};
    device.sink?.publish('motion', {
      detected: n % 2 === 0,
      timestamp: '2026-11-21T10:00:00.000Z',
      n,
      ...more,
    });
  }

  #commands(): Command[] {
    const input = z.strictObject({ n: z.int(), takes_ms: z.number(), fails: z.boolean().default(false) });
    const about = { description: '', input };
    const handle = (command: string) => async (payload: z.output<typeof input>, context: CommandContext) =>
      this.#carryOut(command, payload, context);
    return [
      defineCommand({ ...about, name: 'move', risk_level: 'medium', handle: handle('move') }),
      defineCommand({
        ...about,
        name: 'probe',
        risk_level: 'low',
        repeatable: true,
        handle: handle('probe'),
      }),
      defineCommand({ ...about, name: 'stop', risk_level: 'high', safety: true, handle: handle('stop') }),
    ];
  }

  async #carryOut(
    command: string,
    { n, takes_ms, fails }: { readonly n: number; readonly takes_ms: number; readonly fails: boolean },
    { signal, progress }: CommandContext,
  ): Promise<JsonObject> {
    const { world } = this.#parts;
    const kit = world.current?.name ?? '';
    const run: Run = { n, command, began_ms: world.wall(), kit, ended: undefined };
    this.runs.push(run);
    progress('on its way', 10);
    await sleep(takes_ms, signal);
    if (signal.aborted) {
      run.ended = 'stopped';
      throw new CommandRefused('stopped on the way');
    }
    run.ended = fails ? 'refused' : 'done';
    if (fails) throw new CommandRefused('the machine refuses');
    return { n };
  }
}
