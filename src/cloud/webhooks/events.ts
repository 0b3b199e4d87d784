/** The events that webhooks announce, and their payloads (Standard Webhooks, section "Payload"). */
import { createHash } from 'node:crypto';
import type { Json, JsonObject } from '../../contract/json.ts';
import { taskResource, alarmResource } from '../api/views.ts';
import type { Followed, NewEvent } from '../alarms/follow.ts';
import type { Transition } from '../alarms/kit-alarms.ts';
import { fileResourceOf } from '../files/file-resource.ts';
import type { StoredFile } from '../files/file-store.ts';
import type { AlarmSeverity } from '../severity.ts';
import type { Change, StoredAlarm, StoredTask } from '../stored/stored.ts';
import { type WebhookType, body_bytes_max } from '../api/webhook-resources.ts';

export interface WebhookEvent {
  /** `webhook-id`: the same whenever and wherever this event is read. */
  readonly id: string;
  readonly type: WebhookType;
  readonly kit_id: string;
  readonly asset_id: string | null;
  /** Of an alarm. */
  readonly severity?: AlarmSeverity;
  /** Time of observation, milliseconds since 1970. */
  readonly time_ms: number;
  /** JSON text. */
  readonly body: string;
}

/** The events of one kit in a commit, beside its alarms: what its new messages changed. */
export function eventsOf(
  kit_id: string,
  { changes }: { readonly changes: readonly Change[] },
): readonly WebhookEvent[] {
  return changes.flatMap((change) => {
    if (change.kind === 'task') return endOf(change.task);
    return change.kind === 'kit' && change.turned ? [presenceOf(kit_id, change.turned)] : [];
  });
}

/** Events of assets that changed something, and alarms of kits that opened, became graver or closed. */
export function alarmEvents({
  events,
  transitions,
}: Pick<Followed, 'events' | 'transitions'>): readonly WebhookEvent[] {
  return [...events.map(assetEvent), ...transitions.flatMap(conditionEvent)];
}

/** The content of a file is here, whole. `alarms`: ids of those that it shows. */
export function fileEvent(file: StoredFile, alarms: readonly string[]): WebhookEvent {
  const { kit_id, file_id, data, stored_ms } = file;
  const { thumbnail: _, ...short } = fileResourceOf(file);
  return event(`${kit_id}/file/${file_id}/${stored_ms ?? 0}`, {
    type: 'file',
    kit_id,
    asset_id: data.asset_id,
    time_ms: Date.parse(data.at),
    data: { file: fileResourceOf(file), alarms },
    shorter: { file: short, alarms, shortened: true },
  });
}

/** A task that has ended; none while it has not. */
export function endOf(task: StoredTask): readonly WebhookEvent[] {
  const { kit_id, task_id, asset_id, status, revision, updated_ms } = task;
  if (status !== 'completed' && status !== 'failed') return [];
  const resource = taskResource(task);
  const { payload: _, ...short } = resource;
  return [
    event(`${kit_id}/${task_id}/${revision}/${status}`, {
      type: 'task.ended',
      kit_id,
      asset_id,
      time_ms: updated_ms,
      data: { task: resource },
      shorter: { task: { ...short, result: {} }, shortened: true },
    }),
  ];
}

function assetEvent({ kit_id, message, isLate, severity }: NewEvent): WebhookEvent {
  const { channel, epoch, seq, time_ms, unsynced, data } = message;
  const asset_id = 'asset_id' in channel ? channel.asset_id : null;
  const feed = 'feed' in channel ? channel.feed : '';
  const marks = { ...(isLate && { late: true }), ...(unsynced && { time_quality: 'unsynced' }) };
  const about = { kit_id, asset_id, feed, severity, time_ms, marks };
  return alarmEvent(`${kit_id}/${epoch}/${seq}`, about, data);
}

/** An event that lasts since its alarm was muted. */
function unmutedEvent(alarm: StoredAlarm): WebhookEvent {
  const { kit_id, alarm_id, what: feed, severity, assets, last_ms: time_ms, message, revision } = alarm;
  const about = { kit_id, asset_id: assets[0] ?? null, feed, severity, time_ms, marks: {} };
  return alarmEvent(`${kit_id}/alarm/${alarm_id}/${revision}/unmuted`, about, message);
}

interface AboutEvent extends Pick<WebhookEvent, 'kit_id' | 'asset_id' | 'time_ms'> {
  readonly feed: string;
  readonly severity: AlarmSeverity;
  readonly marks: object;
}

function alarmEvent(identity: string, about: AboutEvent, message: Json): WebhookEvent {
  const { kit_id, asset_id, feed, severity, time_ms, marks } = about;
  const shorter = { asset_id, feed, severity, ...marks, shortened: true };
  const data = { asset_id, feed, severity, ...marks, message };
  return event(identity, { type: 'alarm', kit_id, asset_id, severity, time_ms, data, shorter });
}

/** By what an alarm is about; kits that are offline have events of their own, and events of assets too. */
const types: Readonly<Record<string, WebhookType>> = {
  link: 'link',
  battery: 'battery',
  asset: 'asset',
  queue: 'queue',
  dropped: 'queue',
  refused: 'queue',
  degraded: 'kit.degraded',
  fix: 'kit.degraded',
};

function conditionEvent({ kind, alarm, wasMuted }: Transition): readonly WebhookEvent[] {
  const { kit_id, alarm_id, what, notified, assets, last_ms, closed_ms, revision, changed_ms } = alarm;
  // Who was told how grave it was waits for its end (netdata/netdata#18179).
  const severity = kind === 'closed' ? (notified ?? alarm.severity) : alarm.severity;
  const { [what]: type } = types;
  // Events of assets are announced as they come; the presence of kits has its own.
  if (!type) return wasMuted && alarm.message ? [unmutedEvent(alarm)] : [];
  const resource = alarmResource(alarm, changed_ms);
  const [asset_id = null] = assets;
  const content = {
    type,
    kit_id,
    asset_id,
    severity,
    time_ms: closed_ms ?? last_ms,
    data: { change: kind, alarm: resource },
    shorter: { change: kind, alarm: { ...resource, assets: assets.slice(0, 1) }, shortened: true },
  };
  return [event(`${kit_id}/alarm/${alarm_id}/${revision}/${kind}`, content)];
}

function presenceOf(kit_id: string, turned: NonNullable<Extract<Change, { kind: 'kit' }>['turned']>) {
  return presenceEvent(kit_id, `state/${turned.epoch}/${turned.seq}`, turned);
}

export function presenceEvent(
  kit_id: string,
  identity: string,
  { online, reason, time_ms }: { online: boolean; reason: string | null; time_ms: number },
): WebhookEvent {
  const type = online ? 'kit.online' : 'kit.offline';
  const data = { reason };
  return event(`${kit_id}/${identity}`, { type, kit_id, asset_id: null, time_ms, data, shorter: data });
}

interface Content extends Omit<WebhookEvent, 'id' | 'body'> {
  readonly data: object;
  /** In place of data that is too large. */
  readonly shorter: object;
}

function event(identity: string, { data, shorter, ...about }: Content): WebhookEvent {
  const id = `msg_${createHash('sha256').update(identity).digest('base64url').slice(0, 27)}`;
  const write = (content: object): string =>
    JSON.stringify({
      type: about.type,
      timestamp: new Date(about.time_ms).toISOString(),
      data: { kit_id: about.kit_id, ...content },
    } satisfies JsonObject);
  const whole = write(data);
  const body = Buffer.byteLength(whole) > body_bytes_max ? write(shorter) : whole;
  return { id, ...about, body };
}
