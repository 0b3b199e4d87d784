/** All that takes part in a story, joined. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { parseDown } from '../../src/contract/topics.ts';
import { Broker } from './world/broker.ts';
import type { Message } from './world/broker-session.ts';
import { Devices } from './world/devices.ts';
import { Kit, type KitSettings } from './world/kit.ts';
import { type Link, Network } from './world/network.ts';
import { Rng } from './world/rng.ts';
import { type Machine, type Proc, World } from './world/scheduler.ts';
import { client_id, ServiceHost } from './world/service.ts';
import { Trace } from './checks/trace.ts';
import { Witness } from './checks/witness.ts';

export interface Setting {
  readonly duration_ms: number;
  readonly assets: number;
  readonly feed_every_ms: number;
  readonly event_every_ms: number;
  readonly latency_ms: number;
  readonly kit: KitSettings;
  readonly service_protocol: 'auto' | '3.1.1';
  /** The broker gives messages to the service in any order. */
  readonly isReordering: boolean;
  /** The disk has room for the reserve file. */
  readonly hasReserve: boolean;
  readonly isSynced: boolean;
}

/** What an operator asked for. */
export interface Order {
  readonly n: number;
  readonly command: string;
  task_id: string | undefined;
}

/** A disturbed way to the broker may explain a lost connection for so long after it. */
const after_effects_ms = 25_000;
const violations_max = 20;

export class Scene {
  readonly world: World;
  readonly rng: Rng;
  readonly setting: Setting;
  readonly kit_id: string;
  readonly trace = new Trace();
  readonly witness = new Witness();
  readonly violations: string[] = [];
  readonly orders: Order[] = [];
  readonly network: Network;
  readonly kit_link: Link;
  readonly service_link: Link;
  readonly broker: Broker;
  readonly devices: Devices;
  readonly kit: Kit;
  readonly service: ServiceHost;
  /** Dispatches as they went over the broker, newest last. */
  readonly dispatches: { readonly topic: string; readonly payload: Buffer }[] = [];
  /** The broker, its rules or its limits refused something. */
  refused = false;
  /** The kit's clock was not right all the time. */
  clock_stepped = false;
  /** The kit's buffer or disk was full. */
  room_was_short = false;
  /** The cloud acknowledged what it may not have. */
  lied = false;
  log_lines = 0;
  /** Until when something was wrong between kit and broker. */
  disturbed_until_ms = 0;
  readonly #director: Proc;
  readonly #folder: string;

  constructor(seed: string, setting: Setting) {
    const rng = new Rng(seed);
    this.rng = rng;
    this.setting = setting;
    this.world = new World(rng);
    this.kit_id = rng.fork('kit').uuid();
    this.#folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'kit-sim-'));
    const cloud: Machine = { name: 'cloud', wall_offset_ms: 0 };
    this.#director = this.world.spawn('director', cloud);
    this.world.onCrash = (proc, error) => this.#crashed(proc, error);
    this.network = new Network(this.world, rng.fork('network'));
    this.kit_link = this.network.link('kit', setting.latency_ms);
    this.service_link = this.network.link('service', 2);
    this.broker = new Broker(this.world, cloud, {
      taken: (who, message) => {
        if (who === client_id) this.#spoke(message);
      },
      lost: (messages) => this.witness.brokerLost(messages),
      trace: (facts, text) => this.note('broker', text, facts),
      broken: (who, rule) => this.violation(`${who === this.kit_id ? 'the kit' : who} ${rule}`),
    });
    if (setting.isReordering) {
      const order = rng.fork('order');
      this.broker.rules.place = (who) => (who === client_id ? order.int(0, 4) : undefined);
    }
    this.devices = this.#devices();
    this.kit = this.#kit();
    this.service = this.#service();
  }

  note(who: string, text: string, facts: object = {}): void {
    this.trace.add(this.world.now_ms, who, text, facts);
  }

  violation(found: string): void {
    const what = found.replaceAll(this.#folder, '');
    if (this.violations.length >= violations_max || this.violations.includes(what)) return;
    this.violations.push(what);
    this.note('CHECK', what);
  }

  /** As an act of nobody in the story. */
  later(delay_ms: number, act: () => void): void {
    this.world.after(delay_ms, this.#director, act);
  }

  /** These values hold for so long, and then those. */
  hold<T extends object>(ms: number, target: T, during: Partial<T>, after: Partial<T>): void {
    Object.assign(target, during);
    this.later(ms, () => void Object.assign(target, after));
  }

  /** Between kit and broker something is wrong until `ms` from now. */
  disturb(ms: number): void {
    this.disturbed_until_ms = Math.max(this.disturbed_until_ms, this.world.now_ms + ms + after_effects_ms);
  }

  close(): void {
    for (const proc of [this.kit.run?.proc, this.service.run?.proc]) if (proc) proc.alive = false;
    this.kit.disk.remove();
    this.service.disk.remove();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #devices(): Devices {
    const { world, rng, kit_id, setting } = this;
    const { assets, feed_every_ms, event_every_ms } = setting;
    return new Devices({ world, rng, kit_id, count: assets, feed_every_ms, event_every_ms });
  }

  #kit(): Kit {
    const kit = new Kit({
      world: this.world,
      rng: this.rng.fork('kit-run'),
      folder: this.#folder,
      kit_id: this.kit_id,
      settings: this.setting.kit,
      devices: this.devices,
      witness: this.witness,
      openSocket: () => this.#openKitSocket(),
      lost: (proc, silent) => this.network.lost(proc, silent),
      trace: (text, facts) => this.note('kit', text, facts),
      violation: (what) => this.violation(what),
      later: (delay_ms, act) => this.later(delay_ms, act),
      onLog: (line) => this.#logged(line),
    });
    kit.isSynced = this.setting.isSynced;
    if (!this.setting.hasReserve) kit.disk.state.free_bytes = 10 * 1024 ** 2;
    return kit;
  }

  /**
   * Its end is a violation when nothing was wrong between kit and broker, and the kit neither stops nor began a new epoch,
   * which its will has to name.
   */
  #openKitSocket(): Duplex {
    const socket = this.network.connect(this.kit_link, this.broker);
    const { run } = this.kit;
    const epoch = run?.outbox?.epoch;
    socket.once('close', () => {
      const is_expected = this.kit.run !== run || run?.stopping === true || run?.outbox?.epoch !== epoch;
      if (!is_expected && this.world.now_ms > this.disturbed_until_ms)
        this.violation('the kit lost a healthy connection');
    });
    return socket;
  }

  #service(): ServiceHost {
    return new ServiceHost({
      world: this.world,
      rng: this.rng.fork('service-run'),
      folder: this.#folder,
      protocol: this.setting.service_protocol,
      witness: this.witness,
      openSocket: () => this.network.connect(this.service_link, this.broker),
      lost: (proc, silent) => this.network.lost(proc, silent),
      trace: (text, facts) => this.note('service', text, facts),
      violation: (what) => this.violation(what),
      later: (delay_ms, act) => this.later(delay_ms, act),
    });
  }

  /** The service has sent something down. */
  #spoke(message: Message): void {
    const down = parseDown(this.kit_id, message.topic);
    if (down?.kind === 'task') this.dispatches.push(message);
    if (down?.kind !== 'ack') return;
    const wrong = this.witness.wrongIn(message.payload.toString('utf8'));
    if (wrong) this.violation(wrong);
  }

  #logged(line: string): void {
    this.log_lines += 1;
    const said = sentenceOf(line.replaceAll(this.#folder, ''));
    this.note('log', said ?? 'a line that is no JSON');
  }

  #crashed(proc: Proc | undefined, error: unknown): void {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    const name = proc?.name ?? 'nobody';
    this.violation(`${name} crashed: ${text.split('\n').slice(0, 3).join(' | ')}`);
    const { run } = this.kit;
    if (run && proc === run.proc) this.kit.crashed(run, error);
  }
}

/** A log line without its time, which the trace has. */
function sentenceOf(line: string): string | undefined {
  const value: unknown = JSON.parse(line);
  if (typeof value !== 'object' || value === null) return undefined;
  const { level, msg, ...facts } = Object.fromEntries(Object.entries(value));
  const rest = Object.entries(facts)
    .filter(([key]) => key !== 'time' && key !== 'part')
    .map(([key, fact]) => `${key}=${JSON.stringify(fact)}`);
  return [`${String(level)}: ${String(msg)}`, ...rest].join('  ');
}
