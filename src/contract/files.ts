/** Files beside the messages: announced and agreed on over MQTT, sent to the cloud over HTTP. */
import { z } from 'zod';
import { name_chars_max, sentence_chars_max, time_chars_max, url_chars_max } from './limits.ts';

/** What a file is; the kit and the cloud keep each for its own time. */
export const fileKind = z.enum([
  'still',
  'alarm_still',
  'clip',
  'flight_log',
  'mission',
  'support_bundle',
  'other',
]);
export type FileKind = z.output<typeof fileKind>;

export const thumbnail_bytes_max = 8 * 1024;
/** Alarms that one file names. */
export const file_alarms_max = 16;
const token_chars_max = 128;

const time = z.iso.datetime().max(time_chars_max);

/** Media types without parameters. */
export const contentType = z
  .string()
  .max(name_chars_max)
  .regex(/^[a-z0-9][a-z0-9!#$&^_.+-]*\/[a-z0-9][a-z0-9!#$&^_.+-]*$/u);

/** On `up/file/{file_id}`: the newest says what became of the file. */
const sha256 = z
  .string()
  .max(64)
  .regex(/^[0-9a-f]{64}$/u);

export const fileReport = z.strictObject({
  id: z.uuid(),
  kind: fileKind,
  asset_id: z.uuid().nullable().describe('null: of the kit itself'),
  name: z.string().min(1).max(name_chars_max).describe('for people; no path'),
  content_type: contentType,
  at: time.describe('when what it shows was observed'),
  bytes: z.int().positive(),
  sha256,
  thumbnail: z
    .string()
    .max(Math.ceil(thumbnail_bytes_max / 3) * 4)
    .optional()
    .describe('Base64 of a JPEG of at most 8 KiB; in the first report only, and not of every file'),
  alarms: z
    .array(z.strictObject({ feed: z.string().max(name_chars_max), timestamp: time }))
    .max(file_alarms_max)
    .optional()
    .describe('messages of the asset that it belongs to'),
  state: z
    .enum(['stored', 'requesting', 'uploaded', 'dropped'])
    .describe(
      '`stored`: the kit keeps it. `requesting`: it asks to send it. `uploaded`: the cloud has it, and the kit no longer does. `dropped`: it keeps it no longer and never sent it whole',
    ),
  reason: z
    .string()
    .max(sentence_chars_max)
    .nullable()
    .describe('why it was dropped, or why it waits, as for an order; else null'),
});
export type FileReport = z.output<typeof fileReport>;

/** On `down/file/{file_id}`, not retained: what the cloud wants of a file. */
export const fileAnswer = z.discriminatedUnion('want', [
  z.looseObject({
    want: z.literal('upload').describe('the answer to `requesting`'),
    url: z
      .url({ protocol: /^https?$/u })
      .max(url_chars_max)
      .describe('where it is sent, by tus 1.0'),
    token: z.string().min(1).max(token_chars_max).describe('allows this file alone; `Authorization: Bearer`'),
    expires_at: time,
  }),
  z.looseObject({
    want: z.literal('order').describe('send it also over links on which the kit sends files only on order'),
  }),
  z.looseObject({
    want: z.literal('nothing').describe('the cloud has it; the kit deletes a file with this hash'),
    sha256,
  }),
  z.looseObject({
    want: z.literal('later').describe('the cloud cannot take it now'),
    retry_s: z.number().positive(),
    reason: z.string().max(sentence_chars_max),
  }),
  z.looseObject({
    want: z.literal('deletion').describe('the cloud never takes it; the kit deletes it'),
    reason: z.string().max(sentence_chars_max),
  }),
]);
export type FileAnswer = z.output<typeof fileAnswer>;
