/** Builds the parts of the daemon from a configuration and joins them. Nothing here knows of the process around it. */
import { join } from 'node:path';
import { Fleet } from './app/fleet.ts';
import { kitState } from './app/kit-state.ts';
import { localApi } from './app/local-api.ts';
import type { Metrics } from './app/metrics.ts';
import { commandPolicy, PacePolicy } from './app/policy.ts';
import { LiveConfig, reload, telemetryPace } from './app/reload.ts';
import type { ReportParts } from './app/report.ts';
import type { OwnService } from './app/own-service.ts';
import { Story } from './app/story.ts';
import { openStreams } from './app/streams.ts';
import { Tail } from './app/tail.ts';
import { type Vitals, vitals } from './app/vitals.ts';
import type { Config } from './config.ts';
import { no_broker } from './config/broker.ts';
import { cityFinder } from './geo/cities.ts';
import { createHub, type Hub } from './hub/hub.ts';
import type { LocalApi } from './local/api.ts';
import { openOutbox, type Outbox } from './outbox/outbox.ts';
import type { Clock } from './platform/clock.ts';
import type { LogRoot } from './platform/log.ts';
import { measureLoopLag } from './platform/loop-lag.ts';
import { within } from './platform/time.ts';
import { createTaskRunner, type TaskRunner } from './tasks/runner.ts';
import type { InboxHandlers } from './uplink/inbox.ts';
import { Uplink } from './uplink/uplink.ts';

export const buffer_file = 'buffer.db';
/** Running tasks get so long to end at a stop. */
const stop_tasks_ms = 2_000;
/** Drivers are given up after three seconds each, all at once. */
const stop_drivers_ms = 4_000;
const commit_at_stop_ms = 1_000;
const retry = { first_ms: 500, max_ms: 60_000 } as const;
/** Limits that no configuration needs to change. */
const fixed_limits = { quarantine_rows_max: 1_000, journal_rows_max: 10_000 } as const;

export interface AppDeps {
  readonly log: LogRoot;
  readonly clock: Clock;
  /** Name and version of the software. */
  readonly version: string;
  /** The broker of the configuration, or the embedded one when it names none. */
  readonly broker: NonNullable<Config['broker']>;
}

export interface App {
  readonly local: LocalApi;
  readonly vitals: Vitals;
  /** Counts from the call on. */
  readonly openMetrics: () => Promise<Metrics>;
  /** Takes over what can change while it runs; says in the log what changed and what waits for a restart. */
  reload(next: Config): Promise<void>;
  /** The kit's own service; undefined: none is configured. */
  readonly service: Pick<OwnService, 'url' | 'key_file'> | undefined;
  /** Rejects when the app cannot go on and the process has to start again. */
  readonly crashed: Promise<void>;
  /** Stops tasks, drivers and uplink in this order, says farewell, and closes the buffer. */
  stop(): Promise<void>;
}

/** What ends each part; they end one after the other. */
interface Ends {
  readonly tasks: AbortController;
  readonly hub: AbortController;
  readonly uplink: AbortController;
}

/** Starts everything. Rejects with `StorageUnavailable` if no buffer can be opened. */
export async function startApp(config: Config, deps: AppDeps): Promise<App> {
  const outbox = await openOutbox({
    file: join(config.state_dir, buffer_file),
    limits: { ...config.outbox, ...fixed_limits },
    clock: deps.clock,
    log: deps.log.child({ part: 'outbox' }),
  });
  const ends: Ends = {
    tasks: new AbortController(),
    hub: new AbortController(),
    uplink: new AbortController(),
  };
  const live = new LiveConfig(config);
  const pace = new PacePolicy(
    () => live.config,
    () => linkInUse(parts.hub),
  );
  const parts = joinParts(live, deps, { outbox, pace, ends });
  const { hub, tasks, uplink } = parts;
  const tail = new Tail(() => hub.assets());
  const story = new Story(deps.log, () => hub.assets());
  const service = await ownService(config, parts, deps.log);
  outbox.onAccepted = (row) => {
    tail.tell(row);
    story.tell(row);
    service?.take(row);
  };
  await service?.start();

  const has_broker = deps.broker.url !== no_broker;
  const uplink_done = uplink.run(has_broker ? ends.uplink.signal : AbortSignal.abort());
  tasks.resume();
  const fleet = new Fleet(hub, deps.log);
  fleet.start(config.drivers);

  return {
    local: localApi(parts, tail, deps.log),
    vitals: vitals(parts),
    openMetrics: async () => (await import('./app/metrics.ts')).openMetrics(parts, ends.hub.signal),
    service,
    crashed: outbox.crashed,
    reload: async (next) => reload(next, { live, fleet, hub, pace, log: deps.log }),
    async stop() {
      // Commands that are running need their device to stop what they began.
      ends.tasks.abort();
      await tasks.stop(stop_tasks_ms);
      await within(stop_drivers_ms, fleet.stop());
      ends.hub.abort();
      // The last words of drivers and tasks can be sent only once they are on disk.
      await within(
        commit_at_stop_ms,
        outbox.committed().catch(() => undefined),
      );
      await service?.stop();
      ends.uplink.abort();
      await uplink_done;
      await outbox.close();
    },
  };
}

/** Loaded only where it is wanted: it costs memory. */
async function ownService(config: Config, parts: ReportParts, log: LogRoot): Promise<OwnService | undefined> {
  if (!config.service) return undefined;
  const { createOwnService } = await import('./app/own-service.ts');
  return createOwnService(config.service, parts, log.child({ part: 'service' }));
}

interface Foundation {
  readonly outbox: Outbox;
  readonly pace: PacePolicy;
  readonly ends: Ends;
}

/** Hub, tasks and uplink know each other only by what is passed here. */
function joinParts(live: LiveConfig, deps: AppDeps, { outbox, pace, ends }: Foundation): ReportParts {
  const { log, clock, version, broker } = deps;
  const { config } = live;
  const { signal } = ends.hub;
  const hub: Hub = createHub({
    kit_id: config.kit_id,
    state_dir: join(config.state_dir, 'drivers'),
    outbox,
    announced: outbox.opened.announced,
    configured: config.drivers.map(({ name }) => name),
    clock,
    log: log.child({ part: 'hub' }),
    rates: pace.rates(),
    isOnline: () => uplink.online,
    ...telemetryPace(config),
    cityOf: cityFinder(),
    allow: (asset, command) => commandPolicy(live.config.commands)(asset, command),
    streams: openStreams(config.media, { onUrl: (key) => hub.streamChanged(key), log, signal }),
    assetsChanged: () => tasks.assetsChanged(),
    signal,
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
    broker,
    pace: { ...config.uplink, packetMs: () => pace.packetMs(), backlogKbps: () => pace.backlogKbps() },
    retry,
    epoch: outbox.epoch,
    dispatch: outbox.dispatch,
    inbox: inboxHandlers(outbox, hub, tasks, pace),
    state: (how) => ({ ...kitState(parts, how) }),
    onConnected: ({ session_present }) => {
      if (!session_present) hub.announceAll();
    },
    log: log.child({ part: 'uplink' }),
  });
  const parts: ReportParts = {
    get config() {
      return live.config;
    },
    version,
    broker_url: broker.url,
    started: clock.stamp(),
    clock,
    hub,
    outbox,
    tasks,
    uplink,
    lag: measureLoopLag(signal),
  };
  return parts;
}

function inboxHandlers(outbox: Outbox, hub: Hub, tasks: TaskRunner, pace: PacePolicy): InboxHandlers {
  return {
    task: async (raw, meta) => tasks.receive(raw, meta),
    cancel: (task_id) => tasks.cancel(task_id),
    ack: async (ack) => outbox.confirm(ack),
    sync: hub.announceAll,
    config: (asked) => {
      pace.apply(asked);
      hub.setRates(pace.rates());
    },
  };
}

/** The type of the link that carries the traffic: the first that is online, as the driver of the links orders them. */
function linkInUse(hub: Hub) {
  return hub.links().find(({ status }) => status === 'online')?.type ?? undefined;
}
