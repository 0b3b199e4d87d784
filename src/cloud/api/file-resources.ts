/** Files of kits, as clients read them. */
import { z } from '@hono/zod-openapi';
import { fileKind } from '../../contract/files.ts';

const timestamp = z.iso.datetime();
export const fileState = z.enum(['at_kit', 'stored', 'dropped']);

export const fileResource = z
  .strictObject({
    id: z.uuid(),
    kit_id: z.uuid(),
    kind: fileKind,
    asset_id: z.uuid().nullable().describe('null: of the kit itself'),
    name: z.string(),
    content_type: z.string(),
    at: timestamp.describe('when what it shows was observed'),
    bytes: z.int().positive(),
    sha256: z.string(),
    alarms: z
      .array(z.strictObject({ feed: z.string(), timestamp }))
      .optional()
      .describe('events of the asset that it belongs to'),
    thumbnail: z.string().optional().describe('Base64 of a JPEG of at most 8 KiB'),
    state: fileState.describe(
      '`at_kit`: it waits there. `stored`: its content is here. `dropped`: the kit gave it up',
    ),
    reason: z.string().optional().describe('why the kit gave it up, or why it waits there'),
    received_bytes: z.int().nonnegative().describe('of its content, here'),
    ordered: z.boolean(),
    stored_at: timestamp.optional(),
  })
  .openapi('File');
export type FileResource = z.output<typeof fileResource>;

export const fileList = z
  .strictObject({
    files: z.array(fileResource),
    next: z.string().nullable().describe('send it as `cursor` for the next page; null: this is the last'),
  })
  .openapi('FileList');
