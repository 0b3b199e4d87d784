/** Writes what happens to tasks and assets to the log, under the driver that it concerns. */
import type { JsonObject } from '../../contract/json.ts';
import type { TaskOrigin } from '../../contract/tasks.ts';
import type { AssetActivity, ObservedAsset } from '../hub/activity.ts';
import { cleanTexts } from '../../platform/foreign-text.ts';
import type { Log } from '../../platform/log/log.ts';
import type { ObservedTask, TaskActivity } from '../tasks/activity.ts';

type LoggedAsset = Pick<ObservedAsset, 'id' | 'key' | 'name' | 'driver'>;

export interface ActivityLogParts {
  readonly log: Log;
  readonly assetNamed: (asset_id: string) => LoggedAsset | undefined;
}

/** A plan of a mission has 64 KiB. */
const payload_chars_max = 300;

export class ActivityLog {
  readonly #log: Log;
  readonly #assetNamed: ActivityLogParts['assetNamed'];

  constructor({ log, assetNamed }: ActivityLogParts) {
    this.#log = log;
    this.#assetNamed = assetNamed;
  }

  /** Drivers log each loss and return of their devices; nothing but this line reports that an asset is there at all. */
  asset(activity: AssetActivity): void {
    const { asset, kind } = activity;
    const { driver, key: asset_key, name, type } = asset;
    const log = this.#log.child({ driver });
    const facts = { asset_key, name };
    switch (kind) {
      case 'online':
        if (activity.is_first) log.info(facts, `${type} came online`);
        else log.debug(facts, `${type} came back online`);
        break;
      case 'offline':
        log.debug({ ...facts, reason: activity.reason }, `${type} went offline`);
        break;
      case 'added':
        log.debug(facts, `${type} added`);
        break;
      case 'removed':
        log.info({ ...facts, reason: activity.reason }, `${type} removed`);
        break;
      case 'announced':
        break;
    }
  }

  task(activity: TaskActivity): void {
    const { log, facts } = this.#about(activity.task);
    const command = activity.task.command_name ?? 'command';
    switch (activity.kind) {
      case 'accepted':
        log.debug(facts, `${command} accepted`);
        break;
      case 'started':
        log.info({ ...facts, ...asked(activity.task.payload) }, `${command} started`);
        break;
      case 'completed':
        log.info({ ...facts, ...took(activity.ran_ms) }, `${command} completed`);
        break;
      case 'failed':
        log.warn(
          {
            ...facts,
            // For a task that ran, the line of its start has it.
            ...(activity.ran_ms === null ? asked(activity.task.payload) : {}),
            ...took(activity.ran_ms),
            reason: activity.error,
          },
          `${command} failed`,
        );
        break;
    }
  }

  #about({ id: task_id, asset_id, origin }: ObservedTask): { readonly log: Log; readonly facts: object } {
    const asset = this.#assetNamed(asset_id ?? '');
    const log = this.#log.child(asset ? { driver: asset.driver } : { part: 'tasks' });
    const whom = asset ? { asset_key: asset.key, name: asset.name } : {};
    return { log, facts: { task_id, ...whom, ...(origin && authorOf(origin)) } };
  }
}

/** By which way it came, and who asked for it: by name, else by what is known of them. */
function authorOf({ via, user, uid, requested_by }: TaskOrigin): object {
  if (user !== null) return { via, user };
  // A user whom /etc/passwd does not have, as of a directory service.
  if (uid !== null) return { via, uid };
  return { via, ...(requested_by !== null && { requested_by }) };
}

/** What did not start took no time. */
function took(ran_ms: number | null): { readonly took_s?: number } {
  return ran_ms === null ? {} : { took_s: ran_ms / 1_000 };
}

/** What was asked for, cleaned and cut: the cloud has written it. */
function asked(payload: JsonObject): { readonly payload?: JsonObject | string } {
  if (Object.keys(payload).length === 0) return {};
  const cleaned = cleanTexts(payload);
  const text = JSON.stringify(cleaned);
  return { payload: text.length <= payload_chars_max ? cleaned : `${text.slice(0, payload_chars_max)}…` };
}
