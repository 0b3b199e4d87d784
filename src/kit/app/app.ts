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
import type { LinkType } from '../../contract/kit.ts';
import { KitFiles, type KitFilesOptions } from '../files/kit-files.ts';
import { stayOnLink } from '../files/stay-on-link.ts';
import { Uploader } from '../files/uploader.ts';
import { createHub, type Hub, type HubOptions } from '../hub/hub.ts';
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
import type { Clock } from '../../platform/clock.ts';
import type { Routes } from '../../platform/linux/route-lookup.ts';
import type { LogRoot } from '../../platform/log/log.ts';
import { machineMark } from '../../platform/machine-mark.ts';
import { measureLoopLag } from '../../platform/loop-lag.ts';
import { own_stalls, type Stalls } from '../../platform/stalls.ts';
import { every, utcDay, within } from '../../platform/time.ts';
import { createTaskRunner, type TaskRunner } from '../tasks/runner.ts';
import type { InboxHandlers } from '../uplink/inbox.ts';
import { Uplink, type UplinkOptions } from '../uplink/uplink.ts';
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

/** What ends each part; they end one after the other. */
interface Ends {
  readonly tasks: AbortController;
  readonly hub: AbortController;
  readonly uplink: AbortController;
}

/** Starts everything but the drivers. Rejects with `StorageUnavailable` if no buffer can be opened. */
export async function startApp(config: Config, deps: AppDeps): Promise<App> {
  const outbox = await openBuffer(config, deps);
  const ends: Ends = {
    tasks: new AbortController(),
    hub: new AbortController(),
    uplink: new AbortController(),
  };
  const broken = Promise.withResolvers<never>();
  const crashed = Promise.race([outbox.crashed, broken.promise]);
  const live = new LiveConfig(config);
  const pace = new PacePolicy(
    () => live.config,
    () => linkBy(parts.hub, parts.uplink.carrier)?.type ?? undefined,
    () => low_battery.rates(),
  );
  const low_battery = lowBattery(live, deps.log, { hub: () => parts.hub, pace });
  const own: Own = { service: undefined, acked_ms: Number.NEGATIVE_INFINITY };
  const parts = joinParts(live, deps, { outbox, pace, low_battery, ends, own, broken: broken.reject });
  every(battery_look_ms, ends.hub.signal, () => low_battery.look());
  watch(parts, deps, ends.hub.signal);
  const { hub, tasks, uplink } = parts;
  const tail = new Tail((id) => hub.assetNamed(id));
  const service = await ownService(config, parts, deps.log);
  own.service = service;
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
  const instances = new DriverInstances(hub, deps.log);

  return {
    local: localApi(parts, tail, deps.log),
    vitals: vitals(parts),
    conditions: parts.conditions,
    startDrivers: () => instances.start(config.drivers),
    openMetrics: async () => (await import('./metrics.ts')).openMetrics(parts, ends.hub.signal),
    service,
    crashed,
    reload: async (next) => reload(next, { live, instances, hub, pace, log: deps.log }),
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

/** Notices stalls of the process, and logs why the kit is degraded. */
function watch(parts: ReportParts, { log, stalls = own_stalls }: AppDeps, signal: AbortSignal): void {
  stalls.watch(signal);
  const degraded_log = new DegradedLog(() => performance.now(), log.child({ part: 'kit' }));
  every(look_every_ms, signal, () => degraded_log.look(degraded(parts)));
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

function lowBattery(
  live: LiveConfig,
  log: LogRoot,
  { hub, pace }: { readonly hub: () => Hub; readonly pace: PacePolicy },
): LowBattery {
  return new LowBattery({
    config: () => live.config.low_battery,
    battery: () => hub().kit(),
    onChange() {
      hub().setRates(pace.rates());
      hub().policyChanged();
    },
    onStream: (asset_key) => hub().streamChanged(asset_key),
    log: log.child({ part: 'power' }),
  });
}

/** Local policy first: it holds whatever the battery has. */
function allowed(live: LiveConfig, low_battery: LowBattery): HubOptions['allow'] {
  return (asset, command) => {
    const policy = commandPolicy(live.config.commands)(asset, command);
    return policy === true ? low_battery.allows(command.name) : policy;
  };
}

/** Loaded only where it is wanted: it costs memory. */
async function ownService(config: Config, parts: ReportParts, log: LogRoot): Promise<OwnService | undefined> {
  if (!config.service) return undefined;
  const { createOwnService } = await import('./own-service.ts');
  return createOwnService(config.service, parts, log.child({ part: 'service' }));
}

/** What becomes known after the parts were joined: the kit's own service, and when the cloud acknowledged last. */
interface Own {
  service: OwnService | undefined;
  acked_ms: number;
}

interface Foundation {
  readonly outbox: Outbox;
  readonly pace: PacePolicy;
  readonly low_battery: LowBattery;
  readonly ends: Ends;
  readonly own: Own;
  readonly broken: (error: unknown) => void;
}

/** Hub, tasks and uplink share only what is passed here. */
function joinParts(live: LiveConfig, deps: AppDeps, foundation: Foundation): ReportParts {
  const { outbox, pace, low_battery, ends, own, broken } = foundation;
  const { log, clock, broker, openTransport, routes } = deps;
  const [{ config }, { signal }] = [live, ends.hub];
  const activity_log = new ActivityLog({ log, assetNamed: (id) => hub.assetNamed(id) });
  const facts = processFacts(deps, low_battery, signal);
  const files = openFiles(live, deps, outbox, signal);
  const video = openVideo({
    config,
    low_battery,
    hub: () => hub,
    ...videoOverLink(live, pace, () => parts),
    today: () => dayOf(clock),
    onUrl: (asset_key) => hub.streamChanged(asset_key),
    log: log.child({ part: 'media' }),
    signal,
  });
  const hub: Hub = createHub({
    kit_id: config.kit_id,
    state_dir: join(config.state_dir, 'drivers'),
    outbox,
    announced: outbox.opened.announced,
    configured: config.drivers.map(({ name }) => name),
    clock,
    log: log.child({ part: 'hub' }),
    rates: pace.rates(),
    ...brokerFacts(() => uplink),
    ...telemetryPace(config),
    cityOf: cityAt,
    allow: allowed(live, low_battery),
    ...video.ofCameras,
    observe(activity) {
      activity_log.asset(activity);
      tasks.assetsChanged();
    },
    // The path at the kit's own service; a change of `service` needs a restart.
    picturePath: config.service && ((id) => snapshotPath(config.kit_id, id)),
    files,
    keepsStills: () => live.config.files.stills,
    alarmPicturesOff: () => (pace.isMetered ? texts.metered_link : undefined),
    broken,
    signal,
  });
  const tasks = openTasks(deps, { outbox, hub, activity_log, signal: ends.tasks.signal });
  const uplink: Uplink = new Uplink({
    kit_id: config.kit_id,
    broker,
    renew: renewed,
    pace: {
      ...config.uplink,
      packetMs: () => pace.packetMs(),
      backlogKbps: () => pace.backlogKbps(),
      messagesPerSMax: () => live.config.uplink.messages_per_s_max,
    },
    retry: kit_retry,
    ...epochOf(outbox),
    clock,
    dispatch: outbox.dispatch,
    inbox: inboxHandlers({
      outbox,
      hub,
      tasks,
      pace,
      own,
      video,
      uplink: () => uplink,
      files,
      uploader: () => uploader,
    }),
    state: (how) => ({ ...kitState(parts, how) }),
    onConnected: announceTo(outbox, hub, own),
    onAcknowledged: (message) => facts.uplink_events.emit('acknowledged', message),
    log: log.child({ part: 'uplink' }),
    openTransport,
    routes,
  });
  const drain = measureDrain({ outbox, uplink, clock, own }, log, signal);
  const uploader = openUploader(deps, {
    files,
    live,
    outbox,
    isMetered: (link) => pace.isMeteredOn(link),
    link: (way) => (uplink.online ? (linkBy(hub, way ?? uplink.carrier)?.type ?? 'default') : undefined),
    signal: ends.uplink.signal,
  });
  void files.open().then(async () => uploader.run());
  const parts: ReportParts = {
    get config() {
      return live.config;
    },
    ...facts,
    hub,
    outbox,
    tasks,
    uplink,
    drain,
    files: { view: () => ({ ...files.view(), ...uploader.view }), store: files.store },
    video,
  };
  return parts;
}

/** What the link in use means for viewers of the cloud. */
function videoOverLink(live: LiveConfig, pace: PacePolicy, parts: () => Pick<ReportParts, 'hub' | 'uplink'>) {
  const link = () => linkBy(parts().hub, parts().uplink.carrier);
  return {
    grant: () => pace.videoGrant(live.config.video, parts().hub.dataCap(link()?.name)),
    publicAddress: () => link()?.ip ?? undefined,
  };
}

function dayOf(clock: Clock): string | undefined {
  const { time_ms, synced } = clock.stamp();
  return synced ? utcDay(time_ms) : undefined;
}

function openFiles(
  live: LiveConfig,
  { clock, log, writeBundle }: AppDeps,
  outbox: Outbox,
  signal: AbortSignal,
): KitFiles {
  const { config } = live;
  return new KitFiles({
    kit_id: config.kit_id,
    dir: join(config.state_dir, files_dir),
    limits: () => live.config.files,
    outbox,
    now: () => clock.stamp().time_ms,
    writeBundle,
    log: log.child({ part: 'files' }),
    signal,
  });
}

interface UploaderParts {
  readonly files: KitFiles;
  readonly live: LiveConfig;
  readonly outbox: Outbox;
  readonly isMetered: (link: LinkType | 'default') => boolean;
  /** The link by this interface; null: that of the session; undefined: no session. */
  readonly link: (way: string | null) => LinkType | 'default' | undefined;
  readonly signal: AbortSignal;
}

function openUploader(
  { broker, log, routes, openTransport = openSocket }: AppDeps,
  { files, live, outbox, isMetered, link, signal }: UploaderParts,
): Uploader {
  const endpointOf = ({ protocol, hostname, port }: URL): BrokerEndpoint => {
    const [scheme, usual] = protocol === 'https:' ? ['mqtts', 443] : ['mqtt', 80];
    const { ca, proxy } = broker;
    return { url: `${scheme}://${hostname}:${port || usual}`, ca, proxy, cert: undefined, key: undefined };
  };
  return new Uploader({
    files,
    rule(way) {
      const used = link(way);
      return used && uploadRule(live.config.files.upload, used, isMetered(used));
    },
    async wayTo(url) {
      const [found] = await broker_addresses.find(nextPlace(endpointOf(url)).host);
      return (found && (await routes?.find({ ip: found.address }))?.interface) ?? null;
    },
    isBusy: () => outbox.dispatch.live_rows > 0,
    bytesPerS: () => live.config.files.bytes_per_s,
    async connect(url, ending) {
      const connecting = AbortSignal.any([ending, AbortSignal.timeout(broker.connect_timeout_ms)]);
      const opened = await openTransport(endpointOf(url), connecting);
      return { ...opened, way: await stayOnLink(opened.tcp, routes) };
    },
    log: log.child({ part: 'files' }),
    signal,
  });
}

/** Where the picture that was ordered is fetched, rather than a newer one. */
function snapshotPath(kit_id: string, asset_id: string): string {
  return `/api/kits/${kit_id}/assets/${asset_id}/snapshot.jpg?max_age_s=3600`;
}

function epochOf(outbox: Outbox): Pick<UplinkOptions, 'epoch' | 'wait_ms'> {
  return { epoch: () => outbox.epoch, wait_ms: outbox.opened.epoch_wait_ms };
}

interface TaskNeeds {
  readonly outbox: Outbox;
  readonly hub: Hub;
  readonly activity_log: ActivityLog;
  readonly signal: AbortSignal;
}

function openTasks({ clock, log }: AppDeps, { outbox, hub, activity_log, signal }: TaskNeeds): TaskRunner {
  return createTaskRunner({
    journal: outbox,
    outbox,
    findCommand: hub.findCommand,
    clock,
    log: log.child({ part: 'tasks' }),
    observe: (activity) => activity_log.task(activity),
    signal,
  });
}

/** Parts of the report that depend on no other part. */
function processFacts({ version, clock }: AppDeps, low_battery: LowBattery, signal: AbortSignal) {
  return {
    version,
    started: clock.stamp(),
    clock,
    lag: measureLoopLag(signal),
    lowBattery: () => low_battery.reason(),
    uplink_events: new EventEmitter<UplinkEvents>(),
    conditions: new Conditions(),
  };
}

function announce(hub: Hub, own: Own): void {
  hub.announceAll();
  void own.service?.announcePartners();
}

/** A broker that knows nothing of the kit has forgotten what was retained too; in a new epoch the cloud may have newer values than ours. */
function announceTo(outbox: Outbox, hub: Hub, own: Own): UplinkOptions['onConnected'] {
  outbox.onEpoch = () => announce(hub, own);
  return ({ session_present }) => {
    if (!session_present) announce(hub, own);
  };
}

function measureDrain(
  { outbox, uplink, clock, own }: Pick<ReportParts, 'outbox' | 'uplink' | 'clock'> & { readonly own: Own },
  log: LogRoot,
  signal: AbortSignal,
): DrainMeter {
  const drain = new DrainMeter({
    now_ms: () => clock.stamp().mono_ms,
    waiting: () =>
      outbox
        .depth()
        .values()
        .reduce((sum, { rows }) => sum + rows, 0),
    isConnected: () => uplink.online,
    waitReason: () => waitReason(outbox.dispatch, uplink.problems(), performance.now() - own.acked_ms),
    log: log.child({ part: 'outbox' }),
  });
  every(sample_every_ms, signal, () => drain.sample());
  return drain;
}

function brokerFacts(uplink: () => Uplink): Pick<HubOptions, 'isOnline' | 'carrier' | 'onLinkBack'> {
  return {
    isOnline: () => uplink().online,
    carrier: () => uplink().carrier,
    onLinkBack: () => uplink().linkIsBack(),
  };
}

interface InboxParts extends Pick<Foundation, 'outbox' | 'pace' | 'own'> {
  readonly hub: Hub;
  readonly tasks: TaskRunner;
  readonly files: KitFiles;
  readonly video: Video;
  readonly uplink: () => Uplink;
  readonly uploader: () => Uploader;
}

function inboxHandlers(inbox: InboxParts): InboxHandlers {
  const { outbox, hub, tasks, pace, own, files, video, uplink, uploader } = inbox;
  return {
    task: async (raw, meta) => tasks.receive(raw, meta),
    cancel: (task_id) => tasks.cancel(task_id),
    async ack(ack) {
      own.acked_ms = performance.now();
      outbox.confirm(ack);
    },
    sync: () => {
      announce(hub, own);
      files.announceAll();
    },
    file: async (file_id, answer) => uploader().answer(file_id, answer),
    partner: async (asset_id, change) => own.service?.takePartner(asset_id, change),
    async whep(request, how) {
      const answer = await video.receive(request, how);
      if (answer) uplink().answerViewer(request.id, answer);
    },
    config: (requested) => {
      pace.apply(requested);
      hub.setRates(pace.rates());
    },
  };
}

/**
 * The link by this interface, as that of the session to the broker; where the kernel's answer is no link of the kit (a VPN), of
 * the first that is online, as the driver of the links orders them.
 */
function linkBy(hub: Hub, way: string | null) {
  const links = hub.links();
  return links.find(({ name }) => name === way) ?? links.find(({ status }) => status === 'online');
}
