/** Builds the parts of the daemon from a configuration and joins them. Nothing here knows of the process around it. */
import { join } from 'node:path';
import { commandPolicy, PacePolicy } from './app/policy.ts';
import { degraded, statusReport, type ReportParts } from './app/report.ts';
import { localTasks } from './app/local-tasks.ts';
import { Tail } from './app/tail.ts';
import type { Config } from './config.ts';
import { contract_version } from './contract/topics.ts';
import type { KitState } from './contract/presence.ts';
import { createHub, type Hub } from './hub/hub.ts';
import type { LocalApi } from './local/api.ts';
import { openOutbox, type Outbox } from './outbox/outbox.ts';
import type { Clock } from './platform/clock.ts';
import type { LogRoot } from './platform/log.ts';
import { within } from './platform/time.ts';
import { createTaskRunner, type TaskRunner } from './tasks/runner.ts';
import { Uplink } from './uplink/uplink.ts';

export const buffer_file = 'buffer.db';
/** Running tasks get so long to end at a stop. */
const stop_tasks_ms = 2_000;
/** Drivers are given up after three seconds each, all at once. */
const stop_drivers_ms = 4_000;
/** A slow disk must not keep the kit from saying farewell. */
const commit_at_stop_ms = 1_000;
const retry = { first_ms: 500, max_ms: 60_000 } as const;

export interface AppDeps {
  readonly log: LogRoot;
  readonly clock: Clock;
  /** Name and version of the software. */
  readonly version: string;
  /** The embedded broker, when the configuration names none. */
  readonly broker: NonNullable<Config['broker']>;
}

export interface App {
  readonly local: LocalApi;
  /** Rejects when the app cannot go on and the process has to start again. */
  readonly crashed: Promise<void>;
  /** Stops tasks, drivers and uplink in this order, says farewell, and closes the buffer. */
  stop(): Promise<void>;
}

/** Starts everything. Rejects with `StorageUnavailable` if no buffer can be opened. */
export async function startApp(config: Config, deps: AppDeps): Promise<App> {
  const { log, clock } = deps;
  const started_ms = clock.stamp().time_ms;
  const ends = {
    drivers: new AbortController(),
    hub: new AbortController(),
    tasks: new AbortController(),
    uplink: new AbortController(),
  };

  const outbox = await openOutbox({
    file: join(config.state_dir, buffer_file),
    limits: { ...config.outbox, ...fixed_limits },
    clock,
    log: log.child({ part: 'outbox' }),
  });
  const allow = commandPolicy(config.commands);
  const pace = new PacePolicy(config, () => linkInUse(hub));
  const hub: Hub = createHub({
    kit_id: config.kit_id,
    outbox,
    announced: outbox.opened.announced,
    configured: config.drivers.map(({ name }) => name),
    clock,
    log: log.child({ part: 'hub' }),
    rates: pace.rates(),
    isOnline: () => uplink.online,
    telemetry_floor_ms: config.telemetry.floor_ms,
    allow,
    assetsChanged: () => tasks.assetsChanged(),
    signal: ends.hub.signal,
  });
  const tasks: TaskRunner = createTaskRunner({
    journal: outbox,
    outbox,
    findCommand: hub.findCommand,
    clock,
    log: log.child({ part: 'tasks' }),
    signal: ends.tasks.signal,
  });
  const uplink: Uplink = new Uplink({
    kit_id: config.kit_id,
    broker: deps.broker,
    pace: {
      window_messages: config.uplink.window_messages,
      packetMs: () => pace.packetMs(),
      backlogKbps: () => pace.backlogKbps(),
    },
    retry,
    epoch: outbox.epoch,
    dispatch: outbox.dispatch,
    inbox: {
      task: tasks.receive,
      cancel: tasks.cancel,
      ack: async (ack) => outbox.confirm(ack),
      sync: () => hub.announceAll(),
      config: (asked) => {
        pace.apply(asked);
        hub.setRates(pace.rates());
      },
    },
    state: ({ online, reason }) => ({ ...kitState(report, outbox), online, reason }),
    onConnected: ({ session_present }) => {
      if (!session_present) hub.announceAll();
    },
    log: log.child({ part: 'uplink' }),
  });
  const tail = new Tail(() => hub.assets());
  outbox.onAccepted = (row) => tail.tell(row);
  const local_tasks = localTasks(tasks, clock);
  const report: ReportParts = {
    config,
    version: deps.version,
    broker_url: deps.broker.url,
    started_ms,
    clock,
    hub,
    outbox,
    uplink,
    taskCounts: () => tasks.stats(),
    recentTasks: local_tasks.recent,
  };

  const uplink_done = uplink.run(ends.uplink.signal);
  tasks.resume();
  const drivers_done = Promise.all(
    config.drivers.map(async ({ name, driver, run }) =>
      hub.runDriver({ name, driver, run, log: log.child({ driver: name }), signal: ends.drivers.signal }),
    ),
  );

  return {
    crashed: outbox.crashed,
    local: {
      report: async () => statusReport(report),
      tail: (listener) => tail.listen(listener),
      ...localBuffer(outbox),
      dispatch: local_tasks.dispatch,
      tasks: local_tasks.recent,
      task: local_tasks.find,
    },
    async stop() {
      // Commands that are running need their device to stop what they began.
      ends.tasks.abort();
      await tasks.stop(stop_tasks_ms);
      ends.drivers.abort();
      await within(stop_drivers_ms, drivers_done);
      ends.hub.abort();
      // The last words of drivers and tasks can be sent only once they are on disk.
      await within(commit_at_stop_ms, outbox.committed().catch(() => undefined));
      ends.uplink.abort();
      await uplink_done;
      await outbox.close();
    },
  };
}

/** Limits that no configuration needs to change. */
const fixed_limits = { quarantine_rows_max: 1_000, journal_rows_max: 10_000 } as const;

function localBuffer(
  outbox: Outbox,
): Pick<LocalApi, 'buffer' | 'quarantine' | 'retryQuarantined' | 'discardQuarantined'> {
  return {
    async buffer() {
      const { lanes, file_bytes, disk_free_bytes } = await outbox.inspect();
      const depth = outbox.depth();
      return {
        lanes: [...depth].map(([lane, of]) => ({ lane, ...of, oldest: isoOrNull(lanes[lane].oldest_ms) })),
        quarantined: outbox.ledger().quarantined,
        file_bytes,
        disk_free_bytes,
      };
    },
    async quarantine() {
      const { quarantine } = await outbox.inspect();
      return quarantine.map(({ time_ms, ...row }) => ({ ...row, time: new Date(time_ms).toISOString() }));
    },
    retryQuarantined: async (ids) => outbox.retryQuarantined(ids),
    discardQuarantined: async (ids) => outbox.discardQuarantined(ids),
  };
}

function kitState(parts: ReportParts, outbox: Outbox): Omit<KitState, 'online' | 'reason'> {
  const depth = [...outbox.depth().values()];
  return {
    epoch: outbox.epoch,
    boot: parts.clock.boot_id,
    started_at: new Date(parts.started_ms).toISOString(),
    software: `kit-connector ${parts.version}`,
    contract: contract_version,
    outbox: {
      rows: depth.reduce((sum, { rows }) => sum + rows, 0),
      bytes: depth.reduce((sum, { bytes }) => sum + bytes, 0),
      oldest: isoOrNull(outbox.oldest_ms),
    },
    degraded: degraded(parts),
  };
}

/** The type of the link that carries the traffic: the first that is online. */
function linkInUse(hub: Hub) {
  return hub.kit().wans?.find(({ status }) => status === 'online')?.type ?? undefined;
}

function isoOrNull(time_ms: number | null): string | null {
  return time_ms === null ? null : new Date(time_ms).toISOString();
}
