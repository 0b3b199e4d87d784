/** What the control socket asks, answered by the parts of the daemon. */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { CommandRefused, notSent } from '../../platform/errors.ts';
import type { LocalApi, LogLevelChange, LogLevels, TailMessage } from '../local/api.ts';
import type { Hub } from '../hub/hub.ts';
import type { Outbox } from '../outbox/live/outbox.ts';
import type { LogRoot } from '../../platform/log/log.ts';
import { statusReport, type ReportParts } from './status-report.ts';
import { vitals } from './vitals.ts';
import { durationInWords } from '../../platform/log/entry.ts';
import { texts } from './texts.ts';
import { jsonObject } from '../../contract/json.ts';
import type { Row } from '../outbox/row.ts';

/** Health checks of containers give up after some seconds. */
const health_ms = 2_000;

export function localApi(parts: ReportParts, tail: Tail, log: LogRoot): LocalApi {
  return {
    report: async () => statusReport(parts),
    async health() {
      const { check, summary } = vitals(parts);
      return { fault: (await check(health_ms)) ?? null, summary: summary() };
    },
    tail: (listener) => tail.listen(listener),
    ...localBuffer(parts.outbox),
    ...logLevels(log, parts),
    recentLog: log.recent,
    dispatch: localDispatch(parts),
    tasks: async () => parts.tasks.list(recent_max),
    task: async (id) => parts.tasks.find(id),
    commands: (asset_id) => parts.hub.commandsOf(asset_id),
    forgetAsset(asset_id, { name: user, uid }) {
      const asset = parts.hub.assetNamed(asset_id);
      const refusal = parts.hub.forgetAsset(asset_id);
      if (!asset || refusal !== undefined) throw new CommandRefused(refusal ?? `no asset ${asset_id}`);
      const { id, key, name } = asset;
      log.info({ asset_key: key, name, user, uid }, 'asset forgotten');
      return { id, key, name };
    },
  };
}

function localBuffer(
  outbox: Outbox,
): Pick<LocalApi, 'buffer' | 'quarantine' | 'quarantined' | 'retryQuarantined' | 'discardQuarantined'> {
  return {
    async buffer() {
      const { lanes, file_bytes, disk_free_bytes } = await outbox.inspect();
      const rows = Array.from(outbox.depth(), ([lane, depth]) => ({
        lane,
        ...depth,
        oldest: isoOrNull(lanes[lane].oldest_ms),
      }));
      return { lanes: rows, quarantined: outbox.ledger().quarantined, file_bytes, disk_free_bytes };
    },
    async quarantine() {
      const rows = await outbox.quarantine.list();
      return Array.from(rows, ({ time_ms, ...row }) => ({ ...row, time: new Date(time_ms).toISOString() }));
    },
    async quarantined(id) {
      const found = await outbox.quarantine.find(id);
      if (!found) return undefined;
      const { time_ms, ...message } = found;
      return { ...message, time: new Date(time_ms).toISOString() };
    },
    retryQuarantined: async (ids) => outbox.quarantine.retry(ids),
    discardQuarantined: async (ids) => outbox.quarantine.discard(ids),
  };
}

function isoOrNull(time_ms: number | null): string | null {
  return time_ms === null ? null : new Date(time_ms).toISOString();
}

/** Tasks that a list shows. */
const recent_max = 20;

/** The same way in as for the cloud's dispatches: a local task is journaled, checked and reported like any other. */
function localDispatch({ tasks, clock }: ReportParts): LocalApi['dispatch'] {
  return async ({ asset_id, command, payload, deadline_s }, user) => {
    const task_id = randomUUID();
    const { time_ms } = clock.stamp();
    const deadline = deadline_s === undefined ? null : new Date(time_ms + deadline_s * 1000).toISOString();
    const created_at = new Date(time_ms).toISOString();
    const raw = { task_id, asset_id, command_name: command, payload, created_at, deadline };
    const author = { via: 'local', user: user.name, uid: user.uid } as const;
    await tasks.receive(raw, { task_id_in_topic: task_id, retained: false, duplicate: false, author });
    const task = await tasks.find(task_id);
    if (!task) throw new CommandRefused(notSent('the task was not admitted'));
    return task;
  };
}

/** Parts of the program that name themselves in their lines. */
const parts_of_program = ['hub', 'media', 'outbox', 'service', 'tasks', 'uplink'] as const;

/** Refuses an unknown name before anything is changed. */
function logLevels(log: LogRoot, { hub }: ReportParts): Pick<LocalApi, 'logLevels' | 'changeLogLevels'> {
  const report = (): LogLevels => ({
    levels: log.levels().map(({ name, level, until_ms }) => ({
      name,
      level,
      until: until_ms === null ? null : new Date(until_ms).toISOString(),
    })),
  });
  /** Records the change, so that a later reader sees why the log has more lines for a time. */
  const logChange = (name: string | null, level: LogLevelChange['level'], for_s: number): void => {
    const owner = log.ownerOf(name);
    if (level === null) owner.info({}, texts.level_configured);
    else owner.info({}, texts.level_set(level, durationInWords(for_s)));
  };
  return {
    logLevels: report,
    changeLogLevels({ changes, for_s }) {
      const known = [...hub.drivers().map(({ name }) => name), ...parts_of_program];
      refuseUnknown(changes, known);
      for (const { name, level } of changes) {
        if (level === null) log.reset(name);
        else log.override(name, level, for_s * 1_000);
        logChange(name, level, for_s);
      }
      return report();
    },
  };
}

function refuseUnknown(changes: readonly LogLevelChange[], known: readonly string[]): void {
  const unknown = changes.find(({ name }) => name !== null && !known.includes(name));
  if (!unknown) return;
  throw new CommandRefused(
    `nothing here is called "${unknown.name}"; drivers and parts are ${known.toSorted().join(', ')}`,
  );
}

export class Tail {
  readonly #listeners = new Set<(message: TailMessage) => void>();
  readonly #assetNamed: Hub['assetNamed'];

  constructor(assetNamed: Hub['assetNamed']) {
    this.#assetNamed = assetNamed;
  }

  listen(listener: (message: TailMessage) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Costs nothing without listeners. */
  publish(row: Row): void {
    if (this.#listeners.size === 0) return;
    const [kind = '', id, feed] = row.channel.split('/');
    const asset = this.#assetNamed(id ?? '');
    const message: TailMessage = {
      kind: 'message',
      time: new Date(row.time_ms).toISOString(),
      channel: row.channel,
      asset: asset ? { id: asset.id, key: asset.key, name: asset.name } : null,
      feed: feed ?? kind,
      data: nullableObject.parse(JSON.parse(row.body)),
    };
    for (const listener of this.#listeners) listener(message);
  }
}

const nullableObject = z.nullable(jsonObject);
