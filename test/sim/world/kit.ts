/** The kit's daemon, whole, on a disk and a clock of its own; it can be killed between any two steps. */
import { join } from 'node:path';
import { type App, buffer_file, startApp } from '../../../src/kit/app/app.ts';
import type { Config } from '../../../src/kit/config/config.ts';
import { telemetryOf, telemetrySection } from '../../../src/kit/config/telemetry.ts';
import { videoSection } from '../../../src/kit/config/media.ts';
import type { Position } from '../../../src/contract/envelope.ts';
import { messageOf } from '../../../src/platform/errors.ts';
import type { Draft } from '../../../src/kit/outbox/api.ts';
import type { LedgerReport } from '../../../src/kit/outbox/live/ledger.ts';
import { Outbox } from '../../../src/kit/outbox/live/outbox.ts';
import type { Done } from '../../../src/kit/outbox/protocol.ts';
import { type RowId, rowId } from '../../../src/kit/outbox/row.ts';
import type { Clock } from '../../../src/platform/clock.ts';
import { createLog } from '../../../src/platform/log/log.ts';
import { Stalls } from '../../../src/platform/stalls.ts';
import type { Duplex } from 'node:stream';
import { transportOver } from '../../../src/mqtt/socket.ts';
import { BufferSize } from '../checks/buffer-size.ts';
import type { Devices } from './devices.ts';
import { Disk } from './disk.ts';
import { type PortState, simulatedStore } from './kit-store.ts';
import type { Rng } from './rng.ts';
import type { Machine, Proc, World } from './scheduler.ts';
import type { Trouble, Witness } from '../checks/witness.ts';
import { brokerOptions } from '../../support/brokers/broker-options.ts';

/** systemd starts it again after this time. */
const restart_ms = 2_000;

export interface KitSettings {
  readonly ack: 'auto' | 'broker' | 'cloud';
  readonly protocol: 'auto' | '5' | '3.1.1';
  readonly packet_ms: number;
  readonly window_messages: number;
  readonly rows_max: number;
  readonly bytes_max: number;
}

export interface KitParts {
  readonly world: World;
  readonly rng: Rng;
  readonly folder: string;
  readonly kit_id: string;
  readonly settings: KitSettings;
  readonly devices: Devices;
  readonly witness: Witness;
  readonly openSocket: () => Duplex;
  readonly lost: (proc: Proc, silent: boolean) => void;
  readonly trace: (text: string, facts?: object) => void;
  readonly violation: (what: string) => void;
  /** As an act of whoever looks after the machine. */
  readonly later: (delay_ms: number, act: () => void) => void;
  readonly onLog: (line: string) => void;
}

/** One run of the daemon. */
export interface KitRun {
  readonly proc: Proc;
  app: App | undefined;
  outbox: Outbox | undefined;
  /** Of a commit that was executed and not yet answered. */
  unanswered: readonly RowId[];
  stopping: boolean;
}

export class Kit {
  readonly machine: Machine = { name: 'kit', wall_offset_ms: 0 };
  readonly disk: Disk;
  readonly port: PortState = { hangs_until_ms: 0, slow_ms: 0 };
  run: KitRun | undefined;
  isSynced = true;
  readonly troubles: Trouble[] = [];
  readonly size = new BufferSize();
  /** Since when the kit goes by the cloud's word; earlier PUBACKs had to do. */
  acks_from_ms = Number.POSITIVE_INFINITY;
  reload_count = 0;
  starts = 0;
  readonly #parts: KitParts;
  #boot_ms = 0;
  #boot = 1;
  #highest_epoch = 0;
  #acks_on_disk = false;
  #disabled = false;

  constructor(parts: KitParts) {
    this.#parts = parts;
    this.disk = new Disk(join(parts.folder, 'kit'));
  }

  get isUp(): boolean {
    return this.run?.app !== undefined && !this.run.stopping;
  }

  start(): void {
    if (this.run) return;
    const { world } = this.#parts;
    this.starts += 1;
    const proc = world.spawn(`kit#${this.starts}`, this.machine);
    const run: KitRun = { proc, app: undefined, outbox: undefined, unanswered: [], stopping: false };
    this.run = run;
    world.after(0, proc, () => void this.#start(run));
  }

  /** SIGKILL, or with its machine: then nobody says goodbye, and the last commit may be torn. */
  kill(how: 'process' | 'power'): void {
    const { run } = this;
    const { world, witness, rng, trace } = this.#parts;
    if (!run) return;
    this.run = undefined;
    run.proc.alive = false;
    this.#parts.lost(run.proc, how === 'power');
    let torn = false;
    if (how === 'power') {
      torn = run.unanswered.length > 0 && rng.chance(0.5) ? this.disk.tear(rng) : (this.disk.kill(), false);
      if (torn) witness.tore(run.unanswered);
      this.#boot += 1;
      this.#boot_ms = world.now_ms;
    } else this.disk.kill();
    witness.excuse(world.now_ms, this.troubles, this.#parts.settings.packet_ms);
    trace(how === 'power' ? 'power cut' : 'killed', { kit: run.proc.name, torn });
  }

  /** SIGTERM. */
  stop(done: () => void): void {
    const { run } = this;
    const { world, trace } = this.#parts;
    if (!run?.app || run.stopping) return;
    run.stopping = true;
    const { app } = run;
    trace('is told to stop', { kit: run.proc.name });
    world.after(0, run.proc, () => {
      app.stop().then(
        () => this.#stopped(run, done),
        (error: unknown) => this.#parts.violation(`stop failed: ${messageOf(error)}`),
      );
    });
  }

  /** Runs something inside the daemon, as its drivers and its control socket do. */
  within(act: (run: KitRun & { readonly app: App }) => void): void {
    const { run } = this;
    const app = run?.app;
    if (!run || !app) return;
    this.#parts.world.after(0, run.proc, () => act({ ...run, app }));
  }

  reload(how: 'policy' | 'drivers'): void {
    this.reload_count += 1;
    if (how === 'policy') this.#disabled = !this.#disabled;
    this.within(({ app }) => {
      app.reload(this.config(how === 'drivers' ? this.reload_count : 0)).catch((error: unknown) => {
        this.#parts.violation(`reload failed: ${messageOf(error)}`);
      });
    });
  }

  config(version: number): Config {
    const { kit_id, settings, devices } = this.#parts;
    const driver = devices.driver();
    const options = { version };
    return {
      file: 'config.yaml',
      warnings: [],
      kit_id,
      kit_name: undefined,
      clock: 'trusted',
      state_dir: this.disk.folder,
      runtime_dir: this.disk.folder,
      control_socket: join(this.disk.folder, 'control.sock'),
      socket_gid: undefined,
      broker: undefined,
      uplink: {
        window_messages: settings.window_messages,
        messages_per_s_max: 0,
        packet_ms: settings.packet_ms,
        metered: [],
        backlog_bytes_per_s: backlog_unlimited,
      },
      outbox: {
        bytes_max: settings.bytes_max,
        rows_max: settings.rows_max,
        free_bytes_min: 0,
        age_max_ms: 30 * 86_400_000,
      },
      files: {
        bytes_max: 1e9,
        age_max_ms: 30 * 86_400_000,
        free_bytes_min: 0,
        upload: { default: 'always' },
        bytes_per_s: 0,
        stills: false,
      },
      feeds: { rates_hz: {}, rate_default_hz: Number.POSITIVE_INFINITY },
      media: undefined,
      video: videoSection.parse({}),
      service: undefined,
      telemetry: telemetryOf(telemetrySection.parse({})),
      low_battery: undefined,
      commands: {
        disabled: this.#disabled ? [{ asset: '*', command: 'probe' }] : [],
        max_risk: 'high',
      },
      metrics: undefined,
      doctor: { accepted: [] },
      log: { level: 'info', drivers: {} },
      drivers: [{ name: 'drones', driver, options, raw: options, run: driver.configure(options) }],
    };
  }

  async #start(run: KitRun): Promise<void> {
    const { world, kit_id, settings, openSocket, onLog, trace } = this.#parts;
    const log = createLog({ level: 'info', drivers: {}, readable: false, out: { write: onLog } });
    try {
      const app = await startApp(this.config(0), {
        log,
        clock: this.#clock(),
        version: '0',
        broker: {
          ...brokerOptions('mqtt://broker:1883', {
            username: kit_id,
            protocol: settings.protocol,
            connect_timeout_ms: 15_000,
          }),
          ack: settings.ack,
        },
        openTransport: async (_endpoint, stop) => transportOver(openSocket(), stop),
        stalls: new Stalls(),
        startStore: simulatedStore({
          world,
          rng: this.#parts.rng.fork(run.proc.name),
          proc: run.proc,
          state: this.port,
          onCommit: (work, done) => {
            this.#parts.witness.wrote(work);
            this.#checkSize(done);
            run.unanswered = work.rows.map(({ id }) => id);
          },
          onAck: () => (this.#acks_on_disk = true),
          onAnswer: () => (run.unanswered = []),
        }),
      });
      app.vitals.summary();
      app.startDrivers();
      run.app = app;
      this.#checkMemoryOfAcks(run);
      trace('started', { kit: run.proc.name, epoch: run.outbox?.epoch });
      app.crashed.catch((error: unknown) => this.crashed(run, error));
    } catch (error) {
      this.crashed(run, error);
    }
  }

  /** The daemon ended by itself; systemd starts it again. */
  crashed(run: KitRun, error: unknown): void {
    const { trace } = this.#parts;
    trace('crashed', { kit: run.proc.name, error: messageOf(error) });
    if (this.run !== run) return;
    this.kill('process');
    this.#parts.later(restart_ms, () => this.start());
  }

  /** What the disk did not take is noted in the runtime directory: the next start names it, and nothing is excused. */
  #stopped(run: KitRun, done: () => void): void {
    const { trace } = this.#parts;
    if (this.run !== run) return;
    this.run = undefined;
    run.proc.alive = false;
    this.disk.kill();
    trace('stopped', { kit: run.proc.name });
    done();
  }

  #checkSize(done: Done): void {
    const wrong = this.size.wrongAfter(done, join(this.disk.folder, buffer_file));
    if (wrong) this.#parts.violation(wrong);
  }

  /** That the cloud acknowledges is known from the buffer file: one that cannot be read, or never had it, is an excuse. */
  #checkMemoryOfAcks({ outbox }: KitRun): void {
    if (!outbox || outbox.dispatch.delivery.cloud_acks) return;
    if (this.#acks_on_disk && outbox.health().state === 'ok')
      this.#parts.violation('the kit has forgotten that the cloud acknowledges');
    this.acks_from_ms = Number.POSITIVE_INFINITY;
  }

  #clock(): Clock {
    const { world } = this.#parts;
    const boot_ms = this.#boot_ms;
    return {
      boot_id: `boot-${this.#boot}`,
      stamp: () => ({
        time_ms: Math.floor(world.wall(this.machine)),
        mono_ms: Math.round(world.now_ms - boot_ms),
        synced: this.isSynced,
      }),
    };
  }

  /** The outbox of the run whose code calls now has taken a message. */
  took(outbox: Outbox, position: Position, draft: Draft): void {
    const { world, witness, violation } = this.#parts;
    if (!this.met(outbox)) return;
    const doubt = witness.took({
      id: rowId(position),
      lane: draft.lane,
      channel: draft.channel,
      at_ms: world.now_ms,
      body: JSON.stringify(draft.data),
      on_disk: false,
      excused: false,
    });
    if (doubt) violation(doubt);
  }

  /** The outbox of the run whose code calls now; its epoch must be above all before. */
  met(outbox: Outbox): boolean {
    const { run } = this;
    if (!run || this.#parts.world.current !== run.proc) return false;
    if (run.outbox) return true;
    run.outbox = outbox;
    const { epoch } = outbox;
    if (epoch <= this.#highest_epoch)
      this.#parts.violation(`epoch ${epoch} follows epoch ${this.#highest_epoch}`);
    this.#highest_epoch = Math.max(this.#highest_epoch, epoch);
    return true;
  }
}

const backlog_unlimited = {
  default: 0,
  cellular: 0,
  satellite: 0,
  ethernet: 0,
  wifi: 0,
};

type Append = (this: Outbox, draft: Draft) => Position;
type Ledger = (this: Outbox) => LedgerReport;

let watched: Kit | undefined;
const prototype: { append: Append; ledger: Ledger } = Outbox.prototype;
const { append, ledger } = prototype;
prototype.append = function appendWatched(draft) {
  const position = append.call(this, draft);
  watched?.took(this, position, draft);
  return position;
};
prototype.ledger = function ledgerWatched() {
  watched?.met(this);
  return ledger.call(this);
};

/** From now on this kit hears of every message that an outbox takes. */
export function watchOutboxes(kit: Kit | undefined): void {
  watched = kit;
}
