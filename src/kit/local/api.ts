/** The protocol of the control socket: the bodies of its routes, and the functions of the daemon that answer them. */
import { z } from 'zod';
import type { CommandDefinition } from '../../contract/assets.ts';
import { type JsonObject, jsonObject } from '../../contract/json.ts';
import { link, linkCause } from '../../contract/kit.ts';
import { taskOrigin, taskStatus } from '../../contract/tasks.ts';
import { storage_faults } from '../../platform/errors.ts';

const time = z.iso.datetime();
const count = z.int().nonnegative();

const uplinkReport = z.object({
  state: z.enum(['connected', 'connecting', 'waiting', 'stopped']),
  /** Without credentials. */
  broker: z.string(),
  /** `5` or `3.1.1`; null before the first connection. */
  protocol: z.string().nullable(),
  since: time,
  /** One sentence on the state, for the technician; empty when there is nothing to report. */
  detail: z.string(),
  /** Since the last stable connection. */
  attempts: count,
  /** Until the next attempt; null when none is planned. */
  next_try_ms: z.number().nullable(),
  in_flight: count,
  rtt_ms: z.number().nullable(),
  last_error: z.string().nullable(),
  /** Channels without a subscriber at the broker. */
  unheard: z.array(z.string()),
});

const laneReport = z.object({
  /** On disk. */
  rows: count,
  bytes: count,
  /** Beside them, in memory only: on their way to the broker, or while disk writes fail. */
  memory_rows: count,
});

const outboxReport = z.object({
  /** Since when `accepted`, `delivered` and `dropped` count; null: the clock was not set then. Absent from older daemons, which count since their start. */
  since: time.nullish(),
  accepted: count,
  delivered: count,
  /** Whose acknowledgement counts as delivery: the cloud's once it has sent one (`uplink.ack`). Absent from older daemons. */
  delivered_to: z.enum(['broker', 'cloud']).optional(),
  buffered: count,
  /** By reason. */
  dropped: z.record(z.string(), count),
  quarantined: count,
  /** What is being dropped for want of room, one sentence each; absent from older daemons. */
  dropping: z.array(z.string()).optional(),
  /** `accepted = delivered + buffered + dropped + quarantined` holds. */
  balanced: z.boolean(),
  by_lane: z.record(z.string(), laneReport),
  /** When the oldest buffered message was observed. */
  oldest: time.nullable(),
  file_bytes: count,
  /** While messages of before leave: how many there were and are, and how fast. Null while none do; absent from older daemons. */
  drain: z
    .object({
      from: count,
      left: count,
      per_s: z.number().nonnegative(),
      /** Null: nothing leaves now. */
      left_s: z.number().nonnegative().nullable(),
      /** Why nothing leaves, where that is known; absent from older daemons. */
      waits: z.string().nullish(),
    })
    .nullish(),
  health: z.object({
    state: z.enum(['ok', 'full', 'failing']),
    detail: z.string(),
    fault: z.enum(storage_faults).optional(),
  }),
});

/** Absent from older daemons. Since the folder was made: accepted = uploaded + dropped + kept. */
const filesReport = z.object({
  accepted: count,
  uploaded: count,
  /** By reason. */
  dropped: z.record(z.string(), count),
  kept: z.object({ files: count, bytes: count, ordered: count }),
  bytes_max: count,
  /** Written to the network since the start. */
  sent_bytes: count,
  /** Why the last attempt failed; null: it did not. */
  fault: z.string().nullable(),
});

const deviceReport = z.object({
  name: z.string(),
  tried: z.string(),
  asset_key: z.string().nullable(),
  /** `starting`, `online`, `offline`, `rejected`. */
  state: z.string(),
  reason: z.string().nullable(),
  tried_at: time.nullable(),
  weakness: z.string().optional(),
  next_try_at: time.nullable(),
});

const driverReport = z.object({
  name: z.string(),
  driver: z.string(),
  /** `starting`, `up`, `down` until the next attempt, `rejected`, `stopped`, `hung`. */
  state: z.string(),
  since: time,
  reason: z.string().nullable(),
  facts: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])),
  /** Of `down` and `rejected`; absent from older daemons, as are the devices. */
  next_try_at: time.nullish(),
  /** Its configured devices: what was tried, the answer, the next attempt. */
  devices: z.array(deviceReport).optional(),
});

const itemHealth = z.object({
  /** `works`, `not_offered`, `fails`. */
  state: z.string(),
  reason: z.string().nullable(),
  next_try_at: time.nullable(),
});

const assetReport = z.object({
  id: z.string(),
  key: z.string(),
  name: z.string(),
  type: z.string(),
  status: z.enum(['online', 'offline']),
  reason: z.string().nullable(),
  last_seen_at: time.nullable(),
  /** The driver instance that serves it; absent from older daemons, as is the health. */
  driver: z.string().optional(),
  /** While it is online: what it delivers, by item of `assetHealth`, with the time of each next try. */
  health: z.record(z.string(), itemHealth).optional(),
  feeds: z.record(
    z.string(),
    z.object({
      /** Since the newest message. */
      age_s: z.number().nonnegative(),
      messages: count,
      /** Messages of the device that a newer one replaced before its turn came. */
      coalesced: count,
    }),
  ),
});

/** A task with the field names of the cloud's interface. */
export const taskView = z.object({
  id: z.string(),
  asset_id: z.string(),
  command_name: z.string(),
  payload: jsonObject,
  status: taskStatus,
  /** Output when completed, `error` when failed. */
  result: jsonObject,
  created_at: time,
  updated_at: time,
  /** Why it is open although nothing is done for it any more: its end cannot be recorded. Absent from older daemons. */
  note: z.string().nullish(),
  /** Who asked; absent from older daemons. */
  origin: taskOrigin.nullish(),
});
export type TaskView = z.output<typeof taskView>;

export const statusReport = z.object({
  kit_id: z.string(),
  kit_name: z.string().nullable(),
  version: z.string(),
  started_at: time,
  uptime_s: z.number().nonnegative(),
  /** Reasons for a degraded kit, one sentence each: what is wrong; what to do. */
  degraded: z.array(z.string()),
  /** The part of `degraded` that nothing else in this report shows; absent from older daemons. */
  warnings: z.array(z.string()).optional(),
  uplink: uplinkReport,
  outbox: outboxReport,
  files: filesReport.optional(),
  drivers: z.array(driverReport),
  assets: z.array(assetReport),
  /** The newest kit telemetry as published: `wans`, `gateway`, `battery`, ... */
  kit: jsonObject,
  /** Of `kit.wans`, with why each is as it is; absent from daemons that are older. */
  links: z
    .array(z.object({ ...link.shape, reason: z.string().nullable(), cause: linkCause.nullish() }))
    .optional(),
  /** Of `kit.location`; absent from daemons that are older. */
  location: z
    .object({
      age_s: z.number().nullable(),
      /** The driver instance that reported it. */
      driver: z.string().nullable(),
      /** Why it is unknown or not fresh. */
      reason: z.string().nullable(),
    })
    .optional(),
  /** Viewers of the cloud, and what those of today have cost on metered links; null: no media server. Absent from older daemons. */
  video: z
    .object({ viewers: count, metered_seconds_today: z.number(), metered_bytes_today: z.number() })
    .nullish(),
  tasks: z.object({
    pending: count,
    running: count,
    completed: count,
    failed: count,
    /** Newest first. */
    recent: z.array(taskView),
  }),
});
export type StatusReport = z.output<typeof statusReport>;

/** A message when it was accepted for delivery. */
const tailMessage = z.object({
  kind: z.literal('message'),
  time,
  /** The part of the topic below `k1/{kit_id}/up/`. */
  channel: z.string(),
  /** Null when the message is not about an asset. */
  asset: z.object({ id: z.string(), key: z.string(), name: z.string() }).nullable(),
  /** The feed; else the first word of the channel: `asset`, `task`, `telemetry`, ... */
  feed: z.string(),
  /** Null clears a retained topic. */
  data: jsonObject.nullable(),
});
export type TailMessage = z.output<typeof tailMessage>;

/** A line of `GET /tail`. `skipped` counts the lines that were dropped because the reader was too slow. */
export const tailLine = z.discriminatedUnion('kind', [
  tailMessage,
  z.object({ kind: z.literal('skipped'), lines: count }),
]);
export type TailLine = z.output<typeof tailLine>;

export const bufferReport = z.object({
  lanes: z.array(laneReport.extend({ lane: z.string(), oldest: time.nullable() })),
  quarantined: count,
  file_bytes: count,
  disk_free_bytes: count,
});
export type BufferReport = z.output<typeof bufferReport>;

export const quarantinedMessage = z.object({
  id: count,
  lane: z.string(),
  channel: z.string(),
  time,
  /** MQTT reason code of the broker. */
  code: z.int(),
  reason: z.string(),
  body_bytes: count,
});
export type QuarantinedMessage = z.output<typeof quarantinedMessage>;

export const quarantinedBody = quarantinedMessage.extend({ body: z.string() });
export type QuarantinedBody = z.output<typeof quarantinedBody>;

/** Body of `POST /buffer/quarantine/retry` and `/discard`; all of them when `ids` is left out. */
export const quarantineSelection = z.strictObject({ ids: z.array(count).max(10_000).optional() });
/** Answer: how many were put back or discarded. */
export const quarantineOutcome = z.object({ rows: count });

/** Of an id, a key or a name: an unknown one is compared with those of all assets, which takes time in proportion. */
export const asset_words_max = 1_000;

/** Body of `POST /tasks`. */
export const taskRequest = z.strictObject({
  /** Id, key or unique name. */
  asset: z.string().min(1).max(asset_words_max),
  command: z.string().min(1),
  payload: jsonObject.default({}),
  /** The command's own deadline when left out. */
  deadline_s: z.number().positive().max(86_400).optional(),
});
export type TaskRequest = z.input<typeof taskRequest>;

/** Body of `POST /assets/forget`. */
export const assetRequest = z.strictObject({
  /** Id, key or unique name. */
  asset: z.string().min(1).max(asset_words_max),
});
/** Answer: which asset it was. */
export const assetForgotten = z.object({ id: z.string(), key: z.string(), name: z.string() });
export type AssetForgotten = z.output<typeof assetForgotten>;

const logLevel = z.enum(['debug', 'info', 'warn', 'error', 'fatal']);
/** A driver instance or a part of the program; null: everything without its own level. */
const logName = z.string().min(1).max(64).nullable();

export const log_level_s = { default: 900, max: 86_400 } as const;

/** Body of `POST /log-levels`. */
export const logLevelRequest = z.strictObject({
  /** `level: null` brings back what the configuration specifies. */
  changes: z
    .array(z.strictObject({ name: logName, level: logLevel.nullable() }))
    .min(1)
    .max(64),
  for_s: z.number().positive().max(log_level_s.max).default(log_level_s.default),
});
export type LogLevelRequest = z.output<typeof logLevelRequest>;
export type LogLevelChange = LogLevelRequest['changes'][number];

/** Answer of `GET` and `POST /log-levels`: the general level first. */
export const logLevels = z.object({
  levels: z.array(
    z.object({
      name: logName,
      level: logLevel,
      /** Null: what the configuration specifies. */
      until: time.nullable(),
    }),
  ),
});
export type LogLevels = z.output<typeof logLevels>;

/** Answer of `GET /health`. `fault`: the part that makes no progress. */
export const healthReport = z.object({ fault: z.string().nullable(), summary: z.string() });
export type HealthReport = z.output<typeof healthReport>;

/** Answer of `GET /log`. */
export const recentLog = z.array(z.string());

/** Body of every answer that is not a success. */
export const apiError = z.object({ error: z.string() });

/** A dispatch from the gateway itself, its asset resolved. */
export interface LocalDispatch {
  readonly asset_id: string;
  readonly command: string;
  readonly payload: JsonObject;
  readonly deadline_s: number | undefined;
}

/** A user of this machine at the other end of the control socket; null: unknown. */
export interface LocalUser {
  readonly uid: number | null;
  readonly name: string | null;
}

/** What the control socket asks of the daemon. Rejections reach the technician as the sentence of the error. */
export interface LocalApi {
  report(): Promise<StatusReport> | StatusReport;
  health(): Promise<HealthReport>;
  /** Calls `listener` for each message accepted for delivery until the returned function is called. */
  tail(listener: (message: TailMessage) => void): () => void;
  buffer(): Promise<BufferReport>;
  /** The oldest ones, without their bodies. */
  quarantine(): Promise<readonly QuarantinedMessage[]>;
  /** One with its body. */
  quarantined(id: number): Promise<QuarantinedBody | undefined>;
  /** Answers how many rows were put back. */
  retryQuarantined(ids: readonly number[] | undefined): Promise<number>;
  /** Answers how many rows were discarded. */
  discardQuarantined(ids: readonly number[] | undefined): Promise<number>;
  /** Starts a task as if the cloud had dispatched it; throws `CommandRefused` when it is not even admitted. */
  dispatch(request: LocalDispatch, user: LocalUser): Promise<TaskView>;
  /** The commands of an asset that a task may call. */
  commands(asset_id: string): readonly CommandDefinition[];
  /** The newest tasks, newest first. */
  tasks(): Promise<readonly TaskView[]>;
  task(id: string): Promise<TaskView | undefined>;
  /** Forgets an asset that is gone for good; throws `CommandRefused` while its driver has it. */
  forgetAsset(asset_id: string, user: LocalUser): AssetForgotten;
  logLevels(): LogLevels;
  /** The last lines of the log, JSON, oldest first. */
  recentLog(): readonly string[];
  /** Sets a level for a time; returns the resulting levels. Throws `CommandRefused` for an unknown name. */
  changeLogLevels(request: LogLevelRequest): LogLevels;
}
