/** Tasks as dispatched and as reported, and the other requests that the cloud sends down. */
import { z } from 'zod';
import { jsonObject } from './json.ts';
import { linkType } from './kit.ts';
import {
  command_chars_max,
  feed_chars_max,
  name_chars_max,
  sentence_chars_max,
  time_chars_max,
} from './limits.ts';

export const taskStatus = z.enum(['pending', 'running', 'completed', 'failed']);
export type TaskStatus = z.output<typeof taskStatus>;

/** On `down/task/{task_id}`. Never retained: a retained dispatch would be carried out at each connect. */
export const taskDispatch = z.looseObject({
  task_id: z.uuid().describe('the same as in the topic'),
  asset_id: z.uuid(),
  command_name: z.string().min(1).max(command_chars_max),
  payload: jsonObject.default({}),
  requested_by: z.uuid().nullish(),
  requested_by_name: z
    .string()
    .max(name_chars_max)
    .nullish()
    .describe('who that is, for people: the label of an API key, a user name'),
  created_at: z.iso.datetime().max(time_chars_max),
  deadline: z.iso
    .datetime()
    .max(time_chars_max)
    .nullish()
    .describe("not carried out after this; when absent, the command's own limit counts"),
});
export type TaskDispatch = z.output<typeof taskDispatch>;

/** On `down/task/{task_id}/cancel`. An empty payload means the same as `{}`. */
export const taskCancel = z.looseObject({
  reason: z.string().max(1_000).nullish(),
});
export type TaskCancel = z.output<typeof taskCancel>;

/** Who asked for a task, and by which way. */
export const taskOrigin = z.strictObject({
  via: z
    .enum(['cloud', 'service', 'local'])
    .describe(
      '`cloud`: dispatched on `down/task`; `service`: by the service of the kit; `local`: on its gateway',
    ),
  user: z
    .string()
    .max(name_chars_max)
    .nullable()
    .describe('`requested_by_name` of the dispatch, label of the API key, user name on the gateway'),
  uid: z.int().nonnegative().nullable().describe('user id on the gateway'),
  requested_by: z.uuid().nullable().describe('as given in the dispatch'),
});
export type TaskOrigin = z.output<typeof taskOrigin>;

/** On `up/task/{task_id}`: the dedup key is (task_id, revision); `completed` and `failed` are final. */
export const taskReport = z.strictObject({
  task_id: z.uuid(),
  asset_id: z.uuid().nullable().describe('null when the dispatch could not be read'),
  command_name: z
    .string()
    .max(name_chars_max)
    .nullable()
    .describe('null when the dispatch could not be read'),
  status: taskStatus.exclude(['pending']),
  revision: z.int().positive().describe('rises with each report of the task'),
  result: jsonObject.describe('output when completed; `error` holds the reason when failed; else {}'),
  progress: z
    .strictObject({ message: z.string().max(sentence_chars_max), pct: z.number().min(0).max(100).nullable() })
    .optional()
    .describe('only while running'),
  origin: taskOrigin.optional().describe('absent before contract 1.1'),
  payload: jsonObject
    .optional()
    .describe(
      'as dispatched; absent in reports with progress, where the kit did not keep it, and before contract 1.2',
    ),
  created_at: z.iso
    .datetime()
    .max(time_chars_max)
    .optional()
    .describe('as given in the dispatch; absent where `payload` is'),
});
export type TaskReport = z.output<typeof taskReport>;

/** Ranges in one acknowledgement; the cloud sends the lowest ones first when it has more. */
export const ack_ranges_max = 1_000;

/** On `down/ack`, retained: sequence numbers, first and last of each range, that the cloud has stored. */
export const cloudAck = z.looseObject({
  epoch: z.int().positive(),
  ranges: z.array(z.tuple([z.int().nonnegative(), z.int().nonnegative()])).max(ack_ranges_max),
});
export type CloudAck = z.output<typeof cloudAck>;

/** On `down/sync`: publish presence, assets and commands again. An empty payload means the same as `{}`. */
export const syncRequest = z.looseObject({});
export type SyncRequest = z.output<typeof syncRequest>;

const feedName = z.string().min(1).max(feed_chars_max);

/** On `down/config`, retained. Wishes: the kit's own configuration bounds each of them. */
export const kitConfig = z.looseObject({
  rates_hz: z
    .record(feedName, z.number().min(0.001).max(50))
    .optional()
    .describe('messages a second, by feed name; `default` counts for the feeds not named'),
  backlog_kbps: z
    .partialRecord(z.enum(['default', ...linkType.options]), z.number().min(0).max(1_000_000))
    .optional()
    .describe('kilobits a second that the backlog may use, by type of the link in use; 0: no cap'),
  metered: z
    .array(linkType)
    .max(linkType.options.length * 2)
    .optional()
    .describe('types of links on which every byte costs'),
});
export type KitConfig = z.output<typeof kitConfig>;
