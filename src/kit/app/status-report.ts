/** The daemon's answer to "how are you": the parts' own views, put together for the control socket. */
import type { EventEmitter } from 'node:events';
import type { Config } from '../config/config.ts';
import type { FilesView, KitFiles } from '../files/kit-files.ts';
import type { Uploader } from '../files/uploader.ts';
import type { Hub } from '../hub/hub.ts';
import type { StatusReport } from '../local/api.ts';
import type { Outbox } from '../outbox/live/outbox.ts';
import type { Clock, Stamp } from '../../platform/clock.ts';
import type { LoopLag } from '../../platform/loop-lag.ts';
import type { TaskRunner } from '../tasks/runner.ts';
import type { Acknowledged } from '../uplink/sender.ts';
import type { Uplink } from '../uplink/uplink.ts';
import { type Conditions, degradedReasons, droppingReasons, otherReasons } from './degraded.ts';
import type { DrainMeter } from './drain-meter.ts';
import { texts } from './texts.ts';
import type { Video } from './video.ts';

/** What listeners learn of while the uplink runs. */
export interface UplinkEvents {
  readonly acknowledged: [Acknowledged];
}

export interface ReportParts {
  readonly config: Config;
  readonly version: string;
  readonly started: Stamp;
  readonly clock: Clock;
  readonly hub: Hub;
  readonly outbox: Outbox;
  readonly uplink: Uplink;
  readonly uplink_events: EventEmitter<UplinkEvents>;
  readonly tasks: TaskRunner;
  readonly drain: Pick<DrainMeter, 'report'>;
  readonly files: Pick<KitFiles, 'store'> & { readonly view: () => FilesView & Uploader['view'] };
  readonly video: Pick<Video, 'use' | 'receive'>;
  /** How late the event loop is. */
  readonly lag: LoopLag;
  /** Why power is saved; null: it is not. */
  readonly lowBattery: () => string | null;
  /** Parts of the daemon that do not run. */
  readonly conditions: Conditions;
}

/** Tasks that the status shows. */
const recent_tasks = 20;

export async function statusReport(parts: ReportParts): Promise<StatusReport> {
  const { config, hub, clock } = parts;
  return {
    kit_id: config.kit_id,
    kit_name: config.kit_name ?? null,
    version: parts.version,
    started_at: iso(startTime(parts)),
    // Since boot: the time of day may have been set since.
    uptime_s: Math.max(0, Math.round((clock.stamp().mono_ms - parts.started.mono_ms) / 1000)),
    degraded: degraded(parts),
    warnings: otherReasons({ salvage: parts.outbox.salvage, warnings: config.warnings }),
    uplink: uplinkReport(parts),
    outbox: await outboxReport(parts),
    files: parts.files.view(),
    drivers: Array.from(hub.drivers(), ({ devices = [], ...driver }) => ({
      ...driver,
      facts: { ...driver.facts },
      devices: [...devices],
    })),
    assets: Array.from(hub.assets(), (asset) => ({
      ...asset,
      health: { ...asset.health },
      feeds: { ...asset.feeds },
    })),
    kit: { ...hub.kit() },
    links: [...hub.links()],
    location: hub.location(),
    video: parts.video.use() ?? null,
    // While the disk cannot be read, this report is what the technician needs most.
    tasks: { ...taskCounts(parts), recent: [...(await parts.tasks.list(recent_tasks).catch(() => []))] },
  };
}

/** With the tasks of earlier runs that the journal has: `recent` lists those, too. */
function taskCounts({ tasks, outbox }: ReportParts): Omit<StatusReport['tasks'], 'recent'> {
  const { pending, running, completed, failed } = tasks.stats();
  const before = outbox.opened.ended_tasks;
  return { pending, running, completed: completed + before.completed, failed: failed + before.failed };
}

/** UTC of the start, by the clock as it is set now if it was not set at the start. */
export function startTime({ clock, started }: Pick<ReportParts, 'clock' | 'started'>): number {
  const { time_ms, mono_ms, synced } = clock.stamp();
  if (started.synced || !synced) return started.time_ms;
  return time_ms - (mono_ms - started.mono_ms);
}

export function degraded(parts: ReportParts): string[] {
  const { config, clock, hub, outbox, uplink, lowBattery, conditions } = parts;
  return degradedReasons({
    health: outbox.health(),
    ledger: outbox.ledger(),
    dropping: outbox.drop_episodes.current,
    salvage: outbox.salvage,
    unheard: outbox.dispatch.withoutSubscribers(),
    broker: uplink.problems(),
    refused: outbox.dispatch.refusedKinds(),
    drivers: hub.drivers(),
    assets: hub.assets(),
    clock_synced: clock.stamp().synced,
    low_battery: lowBattery(),
    conditions: conditions.sentences(),
    warnings: config.warnings,
  });
}

function uplinkReport({ uplink, outbox }: ReportParts): StatusReport['uplink'] {
  const status = uplink.status();
  return {
    state: status.state,
    broker: uplink.way,
    protocol: status.protocol,
    since: iso(status.since_ms),
    detail: status.state === 'connected' ? '' : keeping(outbox),
    attempts: status.attempts,
    next_try_ms: status.next_try_in_ms,
    in_flight: status.in_flight,
    rtt_ms: status.rtt_ms,
    last_error: status.last_error,
    unheard: [...outbox.dispatch.withoutSubscribers()],
  };
}

function keeping({ drop_episodes }: Pick<Outbox, 'drop_episodes'>): string {
  return drop_episodes.current.length === 0 ? texts.kept_until_broker : texts.not_all_kept;
}

async function outboxReport({
  outbox,
  drain,
}: Pick<ReportParts, 'outbox' | 'drain'>): Promise<StatusReport['outbox']> {
  const by_lane = Object.fromEntries(outbox.depth());
  const { lanes, file_bytes } = await outbox.inspect().catch(() => nothing_readable);
  const oldest = Object.values(lanes).reduce(
    (least, { oldest_ms }) => Math.min(least, oldest_ms ?? Infinity),
    Infinity,
  );
  const { since_ms, ...ledger } = outbox.ledger();
  return {
    ...ledger,
    since: since_ms === null ? null : iso(since_ms),
    dropping: droppingReasons(outbox.drop_episodes.current),
    delivered_to: outbox.dispatch.delivery.delivered_to,
    dropped: { ...ledger.dropped },
    by_lane,
    oldest: Number.isFinite(oldest) ? iso(oldest) : null,
    file_bytes,
    drain: drain.report(),
    health: outbox.health(),
  };
}
const nothing_readable = { lanes: {}, file_bytes: 0 } as const;

function iso(time_ms: number): string {
  return new Date(time_ms).toISOString();
}
