/** Files of kits in the tables: what the kits report of them, and what became of them here. Their contents are in a folder. */
import { z } from 'zod';
import { fileKind, type FileKind, type FileReport, fileReport } from '../../contract/files.ts';
import { readLenient } from '../lenient.ts';
import { isBuried, observedMs, readTombstones } from '../history/erasure.ts';
import { jsonText, number, numberOrNull, text, textOrNull } from '../sql/columns.ts';
import {
  allOf,
  assigned,
  type Clause,
  clause,
  listed,
  nothing,
  sql,
  type Queries,
  type Row,
} from '../sql/database.ts';
import type { Applied, Arrival, Change, Erasure, StoreContext } from '../stored/stored.ts';
import { texts } from '../texts.ts';

/** Files of one kit that are known; the oldest without content here are forgotten. */
const kit_files_max = 10_000;

/** `at_kit`: it waits there. `stored`: its content is here. `deleted`: it is wanted no longer. */
export const file_states = ['at_kit', 'stored', 'dropped', 'deleted'] as const;
export type FileState = (typeof file_states)[number];

const about = fileReport.omit({ state: true, reason: true, thumbnail: true });

const fileRow = z.object({
  kit_id: text,
  file_id: text,
  data: jsonText.pipe(about.strip()),
  thumbnail: textOrNull,
  state: z.enum(file_states),
  reason: textOrNull,
  at_ms: number,
  received: number,
  ordered_ms: numberOrNull,
  stored_ms: numberOrNull,
  token_hash: textOrNull,
  token_ms: numberOrNull,
});
export type StoredFile = z.output<typeof fileRow>;

export interface FileQuery {
  readonly kinds?: readonly FileKind[] | undefined;
  readonly assets?: readonly string[] | undefined;
  readonly states?: readonly FileState[] | undefined;
  readonly from_ms?: number | undefined;
  readonly to_ms?: number | undefined;
  /** In the order of the list, the newest first: those that follow. */
  readonly after?: { readonly at_ms: number; readonly file_id: string } | undefined;
  readonly limit: number;
}

/** A permit, and what it needs room for. */
export interface Permit {
  readonly hash: string;
  readonly until_ms: number;
  readonly now_ms: number;
  readonly bytes: number;
  readonly bytes_max: number;
}

export interface FilePlace {
  readonly kit_id: string;
  readonly file_id: string;
}

/** Takes a report. What the cloud has deleted, or is of an erased time, stays deleted, and what it has needs no kit. */
export async function applyFile(
  queries: Queries,
  { kit_id, message, now_ms }: Arrival,
  file_id: string,
): Promise<Applied> {
  const read = readLenient(fileReport, message.data);
  if ('fault' in read) return read;
  const { state: reported, reason, thumbnail = null, ...data } = read.data;
  if (data.id !== file_id) return { fault: texts.other_id('id', data.id) };
  const { epoch, seq, unsynced } = message;
  const { asset_id } = data;
  const at_ms = Date.parse(data.at);
  const observed_ms = observedMs({ time_ms: at_ms, unsynced }, now_ms);
  const isGone = isBuried(await readTombstones(queries, kit_id), asset_id, observed_ms);
  const state = stateOf(reported, isGone);
  const [before] = await sql(queries)`SELECT state, reason FROM files
    WHERE kit_id = ${kit_id} AND file_id = ${file_id}`;
  await sql(queries)`INSERT INTO files (kit_id, file_id, kind, asset_id, at_ms, bytes, data, thumbnail, state,
    reason, received, epoch, seq)
    VALUES (${kit_id}, ${file_id}, ${data.kind}, ${data.asset_id}, ${at_ms}, ${data.bytes},
      ${JSON.stringify(data)}, ${isGone ? null : thumbnail}, ${state}, ${reason}, 0, ${epoch}, ${seq})
    ON CONFLICT (kit_id, file_id) DO UPDATE SET thumbnail = COALESCE(files.thumbnail, excluded.thumbnail),
      state = excluded.state, reason = excluded.reason, epoch = excluded.epoch, seq = excluded.seq
    WHERE (excluded.epoch, excluded.seq) > (files.epoch, files.seq)
      AND files.state NOT IN ('stored', 'deleted')`;
  await sql(queries)`DELETE FROM files WHERE kit_id = ${kit_id} AND stored_ms IS NULL AND file_id NOT IN
    (SELECT file_id FROM files WHERE kit_id = ${kit_id} ORDER BY at_ms DESC LIMIT ${kit_files_max})`;
  return isGone || isShownAlready(before, { state, reason }) ? [] : [{ kind: 'file', kit_id, file_id }];
}

/** What is asked for, or announced once more, changes nothing that is shown. */
function isShownAlready(before: Row | undefined, { state, reason }: Pick<StoredFile, 'state' | 'reason'>) {
  const { state: known, reason: why } = before ?? {};
  return known === 'stored' || known === 'deleted' || (known === state && why === reason);
}

function stateOf(reported: FileReport['state'], isGone: boolean): FileState {
  if (isGone) return 'deleted';
  return reported === 'dropped' ? 'dropped' : 'at_kit';
}

/** The contents are deleted from the folder afterwards (`deletedFiles`). */
export async function eraseFiles(
  queries: Queries,
  { kit_id, asset_id, before_ms }: Erasure,
): Promise<readonly Change[]> {
  const of_asset = asset_id === undefined ? nothing : clause`AND asset_id = ${asset_id}`;
  const rows = await sql(queries)`UPDATE files
    SET state = 'deleted', thumbnail = NULL, reason = NULL, token_hash = NULL
    WHERE kit_id = ${kit_id} AND at_ms < ${before_ms} AND state <> 'deleted' ${of_asset}
    RETURNING kit_id, file_id`;
  return rows.map(changeOf);
}

function changeOf(row: Row): Change {
  return { kind: 'file', kit_id: String(row['kit_id']), file_id: String(row['file_id']) };
}

/**
 * Gives a file its permit where contents that are here, and others that have one, leave room for it. Returns how many bytes
 * these take: more than `bytes_max` less its own, and there is none.
 */
async function permitFile(
  queries: Queries,
  { kit_id, file_id }: FilePlace,
  { hash, until_ms, now_ms, bytes, bytes_max }: Permit,
): Promise<{ readonly kept: number; readonly promised: number }> {
  // One after the other, also of several replicas.
  await queries.all(
    `INSERT INTO service (name, value) VALUES ('files', '') ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
  );
  const [row] = await sql(queries)`SELECT
      COALESCE(SUM(CASE WHEN state = 'stored' THEN bytes ELSE 0 END), 0) AS kept,
      COALESCE(SUM(CASE WHEN state <> 'at_kit' THEN 0
        WHEN token_hash IS NOT NULL AND token_ms > CAST(${now_ms} AS BIGINT) THEN bytes ELSE received END), 0)
          AS promised
    FROM files WHERE (stored_ms IS NOT NULL OR token_hash IS NOT NULL)
      AND NOT (kit_id = ${kit_id} AND file_id = ${file_id})`;
  const taken = { kept: Number(row?.['kept']), promised: Number(row?.['promised']) };
  if (taken.kept + taken.promised + bytes <= bytes_max)
    await sql(queries)`UPDATE files SET token_hash = ${hash}, token_ms = ${until_ms}
      WHERE kit_id = ${kit_id} AND file_id = ${file_id}`;
  return taken;
}

interface FileStoreContext extends StoreContext {
  /** The content of a file is here: for webhooks. */
  readonly enqueueFile: (queries: Queries, file: StoredFile, now_ms: number) => Promise<void>;
}

export function fileStore({ database, announce, enqueueFile }: FileStoreContext) {
  const change = async ({ kit_id, file_id }: FilePlace, set: Clause) => {
    await sql(database)`UPDATE files SET ${set} WHERE kit_id = ${kit_id} AND file_id = ${file_id}`;
  };
  /** The same, where others have it in view. */
  const shown = async ({ kit_id, file_id }: FilePlace, set: Clause): Promise<Change> => {
    await change({ kit_id, file_id }, set);
    const done: Change = { kind: 'file', kit_id, file_id };
    await announce(database, [done]);
    return done;
  };
  const rows = async (rest: Clause): Promise<StoredFile[]> =>
    (await sql(database)`SELECT * FROM files WHERE ${rest}`).map((row: Row) => fileRow.parse(row));
  return {
    file: async ({ kit_id, file_id }: FilePlace): Promise<StoredFile | undefined> =>
      (await rows(clause`kit_id = ${kit_id} AND file_id = ${file_id}`))[0],

    /** The newest first. */
    async files(kit_id: string, query: FileQuery): Promise<readonly StoredFile[]> {
      const { kinds, assets, states = ['at_kit', 'stored', 'dropped'], from_ms, to_ms, after, limit } = query;
      const wanted = allOf([
        clause`kit_id = ${kit_id}`,
        kinds && clause`kind IN (${listed(kinds)})`,
        assets && clause`asset_id IN (${listed(assets)})`,
        clause`state IN (${listed(states)})`,
        from_ms !== undefined && clause`at_ms >= ${from_ms}`,
        to_ms !== undefined && clause`at_ms < ${to_ms}`,
        after && clause`at_ms < ${after.at_ms} OR (at_ms = ${after.at_ms} AND file_id > ${after.file_id})`,
      ]);
      return rows(clause`${wanted} ORDER BY at_ms DESC, file_id LIMIT ${limit}`);
    },

    permitFile: async (place: FilePlace, permit: Permit) =>
      database.transaction(async (queries) => permitFile(queries, place, permit)),
    /** A part of it is in the folder since now. */
    fileProgress: async (place: FilePlace, received: number, now_ms: number) =>
      shown(place, assigned({ received, stored_ms: received > 0 ? now_ms : null })),
    /** Why it waited is over, until the kit reports another reason. */
    orderFile: async (place: FilePlace, now_ms: number) =>
      shown(place, assigned({ ordered_ms: now_ms, reason: null })),
    deleteFile: async (place: FilePlace) =>
      shown(place, assigned({ state: 'deleted', thumbnail: null, token_hash: null })),
    fileStored: async ({ kit_id, file_id }: FilePlace, now_ms: number): Promise<Change> => {
      const done: Change = { kind: 'file', kit_id, file_id };
      await database.transaction(async (queries) => {
        const [row] = await sql(queries)`UPDATE files SET state = 'stored', received = bytes,
          token_hash = NULL, stored_ms = ${now_ms}
          WHERE kit_id = ${kit_id} AND file_id = ${file_id} AND state NOT IN ('deleted', 'stored') RETURNING *`;
        if (row) await enqueueFile(queries, fileRow.parse(row), now_ms);
        await announce(queries, [done]);
      });
      return done;
    },
    /** The content is deleted from the folder. */
    fileRemoved: async (place: FilePlace) => change(place, assigned({ stored_ms: null, received: 0 })),

    /** Ordered, and not here yet. */
    orderedFiles: async (kit_id: string) =>
      rows(clause`kit_id = ${kit_id} AND state = 'at_kit' AND ordered_ms IS NOT NULL LIMIT 100`),
    /** With a content, or a part of one, in the folder that is not wanted: deleted, given up, or not continued since. */
    deletedFiles: async (before_ms: number) =>
      rows(clause`stored_ms IS NOT NULL
        AND (state IN ('deleted', 'dropped') OR (state = 'at_kit' AND stored_ms < ${before_ms})) LIMIT 100`),
    /** With a content in the folder, the one that came first. */
    oldestFile: async (): Promise<StoredFile | undefined> =>
      (await rows(clause`state = 'stored' ORDER BY stored_ms LIMIT 1`))[0],

    async fileBytes(): Promise<number> {
      const [row] = await sql(database)`SELECT COALESCE(SUM(bytes), 0) AS bytes FROM files
        WHERE state = 'stored' AND stored_ms IS NOT NULL`;
      return Number(row?.['bytes'] ?? 0);
    },

    /** Deletes those of a kind that came before. */
    async expireFiles(kind: FileKind, before_ms: number): Promise<readonly Change[]> {
      const expired = await sql(database)`UPDATE files SET state = 'deleted', thumbnail = NULL
        WHERE state = 'stored' AND kind = ${kind} AND stored_ms < ${before_ms} RETURNING kit_id, file_id`;
      const changes = expired.map(changeOf);
      if (changes.length > 0) await announce(database, changes);
      return changes;
    },
  };
}
export type FilesStore = ReturnType<typeof fileStore>;
export const file_kinds = fileKind.options;
