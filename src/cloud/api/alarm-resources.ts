/** Alarms, as clients read and change them. */
import { z } from '@hono/zod-openapi';
import { jsonObject } from '../../contract/json.ts';
import { alarmSeverity } from '../severity.ts';

export const alarmStates = ['open', 'acknowledged', 'muted', 'closed'] as const;
export const alarmState = z.enum(alarmStates);
export type AlarmState = z.output<typeof alarmState>;

/** Those of an alarm that is not over. */
export const lasting_states = alarmStates.filter((state) => state !== 'closed');

const note_chars_max = 1_000;
const timestamp = z.iso.datetime();

export const alarm = z
  .strictObject({
    id: z.uuid(),
    kit_id: z.uuid(),
    what: z
      .string()
      .describe(
        'of the kit: `offline`, `degraded`, `battery`, `fix`, `link`, `asset` (offline), `queue`, `dropped`, `refused`; of an asset the name of the event, such as `motion`. Names may be added',
      ),
    subject: z
      .string()
      .optional()
      .describe('name of the link, the degraded condition, or what the event names'),
    assets: z
      .array(z.uuid())
      .describe('assets it is about; with `what` `asset` all that went offline together, the cause first'),
    back: z
      .array(z.uuid())
      .optional()
      .describe('with `what` `asset`, while it is not closed: those of `assets` that are online again'),
    severity: alarmSeverity,
    state: alarmState.describe(
      'closed: it has ended by itself; else muted: until `muted_until`; else acknowledged, or open',
    ),
    since: timestamp.describe('when it was observed first'),
    last: timestamp.describe('when it began the last time, became graver, or took in another asset'),
    count: z
      .int()
      .positive()
      .describe('how often it began: one that comes back within ten minutes is the same'),
    closed_at: timestamp.optional(),
    value: z.number().optional().describe('percent of the battery, or a number of messages'),
    message: jsonObject.optional().describe('data of the newest event'),
    acknowledged: z.strictObject({ by: z.string().describe('label of the key'), at: timestamp }).optional(),
    muted_until: timestamp.optional(),
    note: z.string().optional(),
    files: z
      .array(z.uuid())
      .optional()
      .describe(
        'what shows it, such as the still of a camera, the newest first: `/api/kits/{kit_id}/files/{file_id}`, 404 once it was deleted',
      ),
  })
  .openapi('Alarm');
export type AlarmResource = z.output<typeof alarm>;

export const alarmList = z
  .strictObject({
    alarms: z.array(alarm),
    next: z.string().nullable().describe('send it as `cursor` for the next page; null: this is the last'),
  })
  .openapi('AlarmList');

export const changeAlarm = z
  .strictObject({
    acknowledged: z.boolean().optional().describe('true: by the holder of the key, now; false: open again'),
    muted_until: timestamp
      .nullable()
      .optional()
      .describe('announced by no webhook until then, also when it comes back; null: muted no longer'),
    note: z.string().max(note_chars_max).nullable().optional().describe('null: none'),
  })
  .refine((change) => Object.keys(change).length > 0, 'send at least one field')
  .openapi('ChangeAlarm', { minProperties: 1 });
