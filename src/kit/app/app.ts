/** Builds the parts of the daemon from a configuration and joins them. Independent of the process around it. */
import { EventEmitter } from 'node:events';
import { join } from 'node:path';
import { ActivityLog } from './activity-log.ts';
import { Conditions, DegradedLog, look_every_ms } from './degraded.ts';
import { DrainMeter, sample_every_ms, waitReason } from './drain-meter.ts';
import { DriverInstances } from './driver-instances.ts';
import { kitState } from './kit-state.ts';
import { localApi, Tail } from './local-api.ts';
import type { Metrics } from './metrics.ts';
import { commandPolicy, PacePolicy, uploadRule } from './policy.ts';
import { battery_look_ms, LowBattery } from './low-battery.ts';
import { LiveConfig, reload, telemetryPace } from './reload.ts';
import { degraded, type ReportParts, type UplinkEvents } from './status-report.ts';
import type { OwnService } from './own-service.ts';
import { type Vitals, vitals } from './vitals.ts';
import type { Config } from '../config/config.ts';
import { no_broker, renewed } from '../config/broker.ts';
import { cityAt } from '../geo/cities.ts';
import { KitFiles, type KitFilesOptions } from '../files/kit-files.ts';
import { stayOnLink } from '../files/stay-on-link.ts';
import { Uploader } from '../files/uploader.ts';
import { createHub, type Hub } from '../hub/hub.ts';
import type { LocalApi } from '../local/api.ts';
import { openOutbox, type Outbox, type OutboxOptions } from '../outbox/live/outbox.ts';
import type { StartStore } from '../outbox/live/store-client.ts';
import { kit_retry } from '../../mqtt/reconnect.ts';
import { broker_addresses } from '../../mqtt/broker-addresses.ts';
import {
  type BrokerEndpoint,
  nextPlace,
  openTransport as openSocket,
  type OpenTransport,
} from '../../mqtt/socket.ts';
import type { Clock, Stamp } from '../../platform/clock.ts';
import type { Routes } from '../../platform/linux/route-lookup.ts';
import type { LogRoot } from '../../platform/log/log.ts';
import { machineMark } from '../../platform/machine-mark.ts';
import { type LoopLag, measureLoopLag } from '../../platform/loop-lag.ts';
import { own_stalls, type Stalls } from '../../platform/stalls.ts';
import { every, utcDay, within } from '../../platform/time.ts';
import { createTaskRunner, type TaskRunner } from '../tasks/runner.ts';
import type { InboxHandlers } from '../uplink/inbox.ts';
import { Uplink } from '../uplink/uplink.ts';
import { texts } from './texts.ts';
import { openVideo, type Video } from './video.ts';

export const buffer_file = 'buffer.db';
const files_dir = 'files';
/** Running tasks get so long to end at a stop. */
const stop_tasks_ms = 2_000;
/** Drivers stop in parallel and are abandoned after three seconds. */
const stop_drivers_ms = 4_000;
const commit_at_stop_ms = 1_000;
/** Limits that no configuration needs to change. */
const fixed_limits = { journal_rows_max: 10_000 } as const;

export interface AppDeps {
  readonly log: LogRoot;
  readonly clock: Clock;
  /** Name and version of the software. */
  readonly version: string;
  /** The broker of the configuration, or the embedded one when it names none. */
  readonly broker: NonNullable<Config['broker']>;
  /** Where the buffer file is served; left out: in its own thread. */
  readonly startStore?: StartStore;
  /** Receives the progress of reading a damaged buffer file. */
  readonly onSalvage?: OutboxOptions['onSalvage'];
  /** The kernel's routing; left out: a changed route is noticed by the silence of the broker. */
  readonly routes?: Routes;
  /** Writes a support bundle to this path; left out: the kit offers none. */
  readonly writeBundle?: KitFilesOptions['writeBundle'];
  /** How the broker is reached; left out: over a socket of the operating system. */
  readonly openTransport?: OpenTransport;
  /** The stalls of the process, for kits that share one; default: a record for this kit alone. */
  readonly stalls?: Stalls;
}

export interface App {
  readonly local: LocalApi;
  readonly vitals: Vitals;
  /** Faults of the process around the app, for its status. */
  readonly conditions: Conditions;
  /** Counts from the call on. */
  readonly openMetrics: () => Promise<Metrics>;
  /** Starts the drivers of the configuration, once: their code is loaded after the kit answers on its control socket. */
  startDrivers(): void;
  /** Applies what can change at run time; logs what changed and what needs a restart. */
  reload(next: Config): Promise<void>;
  /** The kit's own service; undefined: none is configured. */
  readonly service: Pick<OwnService, 'url' | 'key_file'> | undefined;
  /** Rejects when the app cannot continue and the process has to restart. */
  readonly crashed: Promise<void>;
  /** Stops tasks, drivers and uplink in this order, publishes the farewell, and closes the buffer. */
  stop(): Promise<void>;
}

/** Starts everything but the drivers. Rejects with `StorageUnavailable` if no buffer can be opened. */
export async function startApp(config: Config, deps: AppDeps): Promise<App> {
  const { log, stalls = own_stalls } = deps;
  const parts = new Parts(config, deps, await openBuffer(config, deps));
  const { outbox, hub, tasks, uplink, ends, live, pace } = parts;
  every(battery_look_ms, ends.hub.signal, () => parts.low_battery.look());
  stalls.watch(ends.hub.signal);
  const degraded_log = new DegradedLog(() => performance.now(), log.child({ part: 'kit' }));
  every(look_every_ms, ends.hub.signal, () => degraded_log.look(degraded(parts)));
  const tail = new Tail((id) => hub.assetNamed(id));
  if (config.service) {
    // Loaded only where it is wanted: it costs memory.
    const { createOwnService } = await import('./own-service.ts');
    parts.service = createOwnService(config.service, parts, log.child({ part: 'service' }));
  }
  const { service } = parts;
  outbox.onAccepted = (row) => {
    tail.publish(row);
    service?.take(row);
  };
  await service?.start();

  const has_broker = deps.broker.url !== no_broker;
  const uplink_done = uplink.run(has_broker ? ends.uplink.signal : AbortSignal.abort());
  tasks.resume();
  outbox.onLeftOpen = (entries) => tasks.takeUp(entries);
  outbox.onAnnounced = (announced) => hub.takeUp(announced);
  const instances = new DriverInstances(hub, log);

  return {
    local: localApi(parts, tail, log),
    vitals: vitals(parts),
    conditions: parts.conditions,
    startDrivers: () => instances.start(config.drivers),
    openMetrics: async () => (await import('./metrics.ts')).openMetrics(parts, ends.hub.signal),
    service,
    crashed: parts.crashed,
    reload: async (next) => reload(next, { live, instances, hub, pace, log }),
    async stop() {
      // Commands that are running need their device to stop what they began.
      ends.tasks.abort();
      await tasks.stop(stop_tasks_ms);
      await within(stop_drivers_ms, instances.stop());
      ends.hub.abort();
      // The last messages of drivers and tasks can be sent only once they are on disk.
      await within(
        commit_at_stop_ms,
        outbox.committed().catch(() => undefined),
      );
      await service?.stop();
      ends.uplink.abort();
      await uplink_done;
      await parts.files.store.close();
      await outbox.close();
    },
  };
}

async function openBuffer(config: Config, deps: AppDeps): Promise<Outbox> {
  const { clock, log, startStore, onSalvage, stalls } = deps;
  return openOutbox({
    file: join(config.state_dir, buffer_file),
    limits: { ...config.outbox, ...fixed_limits },
    clock,
    kit_id: config.kit_id,
    runtime_dir: config.runtime_dir,
    machine: machineMark(),
    log: log.child({ part: 'outbox' }),
    startStore,
    onSalvage,
    stalls,
  });
}

/** The parts of the daemon, joined: each shares with the others only what it is given here, and asks for what is made after it. */
class Parts implements ReportParts {
  /** What ends them; they end one after the other. */
  readonly ends = {
    tasks: new AbortController(),
    hub: new AbortController(),
    uplink: new AbortController(),
  };
  readonly version: string;
  readonly clock: Clock;
  readonly started: Stamp;
  readonly lag: LoopLag;
  readonly uplink_events = new EventEmitter<UplinkEvents>();
  readonly conditions = new Conditions();
  readonly lowBattery = () => this.low_battery.reason();
  readonly live: LiveConfig;
  readonly outbox: Outbox;
  readonly pace: PacePolicy;
  readonly low_battery: LowBattery;
  readonly files: ReportParts['files'];
  readonly video: Video;
  readonly hub: Hub;
  readonly tasks: TaskRunner;
  readonly uplink: Uplink;
  readonly drain: DrainMeter;
  readonly crashed: Promise<void>;
  /** Undefined: none is configured. */
  service: OwnService | undefined;
  readonly #deps: AppDeps;
  readonly #kit_files: KitFiles;
  readonly #uploader: Uploader;
  readonly #broken = Promise.withResolvers<never>();
  /** When the cloud acknowledged last. */
  #acked_ms = Number.NEGATIVE_INFINITY;

  constructor(config: Config, deps: AppDeps, outbox: Outbox) {
    const { signal } = this.ends.hub;
    const { clock, version, log } = deps;
    this.#deps = deps;
    this.version = version;
    this.clock = clock;
    this.outbox = outbox;
    this.crashed = Promise.race([outbox.crashed, this.#broken.promise]);
    this.live = new LiveConfig(config);
    this.pace = new PacePolicy(
      () => this.config,
      () => this.#linkInUse()?.type ?? undefined,
      () => this.low_battery.rates(),
    );
    this.low_battery = new LowBattery({
      config: () => this.config.low_battery,
      battery: () => this.hub.kit(),
      onChange: () => {
        this.hub.setRates(this.pace.rates());
        this.hub.policyChanged();
      },
      onStream: (asset_key) => this.hub.streamChanged(asset_key),
      log: log.child({ part: 'power' }),
    });
    const activity_log = new ActivityLog({ log, assetNamed: (id) => this.hub.assetNamed(id) });
    this.started = clock.stamp();
    this.lag = measureLoopLag(signal);
    this.#kit_files = this.#openFiles();
    this.video = openVideo({
      config,
      low_battery: this.low_battery,
      hub: () => this.hub,
      grant: () => this.pace.videoGrant(this.config.video, this.hub.dataCap(this.#linkInUse()?.name)),
      publicAddress: () => this.#linkInUse()?.ip ?? undefined,
      today: () => dayOf(clock),
      onUrl: (asset_key) => this.hub.streamChanged(asset_key),
      log: log.child({ part: 'media' }),
      signal,
    });
    this.hub = this.#openHub(activity_log);
    this.tasks = createTaskRunner({
      journal: outbox,
      outbox,
      findCommand: this.hub.findCommand,
      clock,
      log: log.child({ part: 'tasks' }),
      observe: (activity) => activity_log.task(activity),
      signal: this.ends.tasks.signal,
    });
    this.uplink = this.#openUplink();
    this.drain = new DrainMeter({
      now_ms: () => clock.stamp().mono_ms,
      waiting: () =>
        outbox
          .depth()
          .values()
          .reduce((sum, { rows }) => sum + rows, 0),
      isConnected: () => this.uplink.online,
      waitReason: () =>
        waitReason(outbox.dispatch, this.uplink.problems(), performance.now() - this.#acked_ms),
      log: log.child({ part: 'outbox' }),
    });
    every(sample_every_ms, signal, () => this.drain.sample());
    this.#uploader = this.#openUploader();
    this.files = {
      view: () => ({ ...this.#kit_files.view(), ...this.#uploader.view }),
      store: this.#kit_files.store,
    };
    void this.#kit_files.open().then(async () => this.#uploader.run());
  }

  get config(): Config {
    return this.live.config;
  }

  #openFiles(): KitFiles {
    const { kit_id, state_dir } = this.config;
    const { clock, log, writeBundle } = this.#deps;
    return new KitFiles({
      kit_id,
      dir: join(state_dir, files_dir),
      limits: () => this.config.files,
      outbox: this.outbox,
      now: () => clock.stamp().time_ms,
      writeBundle,
      log: log.child({ part: 'files' }),
      signal: this.ends.hub.signal,
    });
  }

  #openHub(activity_log: ActivityLog): Hub {
    const { config, outbox, clock, pace, low_battery } = this;
    return createHub({
      kit_id: config.kit_id,
      state_dir: join(config.state_dir, 'drivers'),
      outbox,
      announced: outbox.opened.announced,
      configured: config.drivers.map(({ name }) => name),
      clock,
      log: this.#deps.log.child({ part: 'hub' }),
      rates: pace.rates(),
      isOnline: () => this.uplink.online,
      carrier: () => this.uplink.carrier,
      onLinkBack: () => this.uplink.linkIsBack(),
      ...telemetryPace(config),
      cityOf: cityAt,
      // Local policy first: it holds whatever the battery has.
      allow: (asset, command) => {
        const policy = commandPolicy(this.config.commands)(asset, command);
        return policy === true ? low_battery.allows(command.name) : policy;
      },
      ...this.video.ofCameras,
      observe: (activity) => {
        activity_log.asset(activity);
        this.tasks.assetsChanged();
      },
      // The path at the kit's own service; a change of `service` needs a restart.
      picturePath: config.service && ((id) => snapshotPath(config.kit_id, id)),
      files: this.#kit_files,
      keepsStills: () => this.config.files.stills,
      alarmPicturesOff: () => (pace.isMetered ? texts.metered_link : undefined),
      broken: this.#broken.reject,
      signal: this.ends.hub.signal,
    });
  }

  #openUplink(): Uplink {
    const { config, outbox, clock, pace } = this;
    const { log, broker, openTransport, routes } = this.#deps;
    // In a new epoch the cloud may have newer values than ours.
    outbox.onEpoch = () => this.#announce();
    return new Uplink({
      kit_id: config.kit_id,
      broker,
      renew: renewed,
      pace: {
        ...config.uplink,
        packetMs: () => pace.packetMs(),
        backlogKbps: () => pace.backlogKbps(),
        messagesPerSMax: () => this.config.uplink.messages_per_s_max,
      },
      retry: kit_retry,
      epoch: () => outbox.epoch,
      wait_ms: outbox.opened.epoch_wait_ms,
      clock,
      dispatch: outbox.dispatch,
      inbox: this.#inbox(),
      state: (how) => ({ ...kitState(this, how) }),
      // A broker that knows nothing of the kit has forgotten what was retained too.
      onConnected: ({ session_present }) => {
        if (!session_present) this.#announce();
      },
      onAcknowledged: (message) => this.uplink_events.emit('acknowledged', message),
      log: log.child({ part: 'uplink' }),
      openTransport,
      routes,
    });
  }

  #inbox(): InboxHandlers {
    const { outbox, hub, tasks, pace } = this;
    return {
      task: async (raw, meta) => tasks.receive(raw, meta),
      cancel: (task_id) => tasks.cancel(task_id),
      ack: async (ack) => {
        this.#acked_ms = performance.now();
        outbox.confirm(ack);
      },
      sync: () => {
        this.#announce();
        this.#kit_files.announceAll();
      },
      file: async (file_id, answer) => this.#uploader.answer(file_id, answer),
      partner: async (asset_id, change) => this.service?.takePartner(asset_id, change),
      whep: async (request, how) => {
        const answer = await this.video.receive(request, how);
        if (answer) this.uplink.answerViewer(request.id, answer);
      },
      config: (requested) => {
        pace.apply(requested);
        hub.setRates(pace.rates());
      },
    };
  }

  #announce(): void {
    this.hub.announceAll();
    void this.service?.announcePartners();
  }

  #openUploader(): Uploader {
    const { broker, log, routes, openTransport = openSocket } = this.#deps;
    const endpointOf = ({ protocol, hostname, port }: URL): BrokerEndpoint => {
      const [scheme, usual] = protocol === 'https:' ? ['mqtts', 443] : ['mqtt', 80];
      const { ca, proxy } = broker;
      return { url: `${scheme}://${hostname}:${port || usual}`, ca, proxy, cert: undefined, key: undefined };
    };
    return new Uploader({
      files: this.#kit_files,
      rule: (way) => {
        if (!this.uplink.online) return undefined;
        const used = this.#linkBy(way ?? this.uplink.carrier)?.type ?? 'default';
        return uploadRule(this.config.files.upload, used, this.pace.isMeteredOn(used));
      },
      async wayTo(url) {
        const [found] = await broker_addresses.find(nextPlace(endpointOf(url)).host);
        return (found && (await routes?.find({ ip: found.address }))?.interface) ?? null;
      },
      isBusy: () => this.outbox.dispatch.live_rows > 0,
      bytesPerS: () => this.config.files.bytes_per_s,
      async connect(url, ending) {
        const connecting = AbortSignal.any([ending, AbortSignal.timeout(broker.connect_timeout_ms)]);
        const opened = await openTransport(endpointOf(url), connecting);
        return { ...opened, way: await stayOnLink(opened.tcp, routes) };
      },
      log: log.child({ part: 'files' }),
      signal: this.ends.uplink.signal,
    });
  }

  #linkInUse() {
    return this.#linkBy(this.uplink.carrier);
  }

  /**
   * The link by this interface, as that of the session to the broker; where the kernel's answer is no link of the kit (a VPN), of
   * the first that is online, as the driver of the links orders them.
   */
  #linkBy(way: string | null) {
    const links = this.hub.links();
    return links.find(({ name }) => name === way) ?? links.find(({ status }) => status === 'online');
  }
}

function dayOf(clock: Clock): string | undefined {
  const { time_ms, synced } = clock.stamp();
  return synced ? utcDay(time_ms) : undefined;
}

/** Where the picture that was ordered is fetched, rather than a newer one. */
function snapshotPath(kit_id: string, asset_id: string): string {
  return `/api/kits/${kit_id}/assets/${asset_id}/snapshot.jpg?max_age_s=3600`;
}
