/** `kit-connector history`: what the service has of each kit, and its way into another service. The service may run meanwhile. */
import { randomUUID } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { lstat, rename, rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { z } from 'zod';
import { messageOf } from '../platform/errors.ts';
import type { HistoryStore, KitSize } from '../cloud/history/history-store.ts';
import { exportKit } from '../cloud/history/transfer/export.ts';
import { ExportUnreadable, type Imported, importLines } from '../cloud/history/transfer/import.ts';
import { linesIn } from '../cloud/history/transfer/lines.ts';
import { complain, exit, printJson, say, type Shell, size, table } from './terminal/shell.ts';
import { texts } from './texts.ts';
import { missingFile, withStore } from './service/database.ts';
import type { DatabaseOptions } from './service/database-options.ts';
import { localTime } from '../platform/local-time.ts';
import type { Store } from '../cloud/store/sql-store.ts';

interface ExportOptions extends DatabaseOptions {
  readonly kit: readonly string[];
  /** Replaces a file that exists. */
  readonly force?: true;
}

export async function listHistory(options: DatabaseOptions, shell: Shell): Promise<number> {
  if (await lacksDatabase(options, shell)) return exit.failed;
  const kits = (await withStore(options, async (store) => store.historySizes())).map(shown);
  if (options.json) printJson(shell, kits);
  else if (kits.length === 0) say(shell, texts.no_history);
  else {
    const rows = kits.map(({ kit_id, messages, bytes, from, to }) => [
      kit_id,
      messages.toLocaleString('en'),
      size(bytes),
      from === null ? texts.unknown : localTime(from),
      to === null ? texts.unknown : localTime(to),
    ]);
    say(shell, ...table([['kit', 'messages', 'size', 'from', 'to'], ...rows]));
  }
  return exit.ok;
}

export async function exportHistory(file: string, options: ExportOptions, shell: Shell): Promise<number> {
  if (!z.array(z.uuid()).safeParse(options.kit).success) {
    complain(shell, texts.invalid_uuid);
    return exit.usage;
  }
  if ((await lacksDatabase(options, shell)) || (await isTaken(file, options, shell))) return exit.failed;
  return withStore(options, async (store) => {
    const known = (await store.historySizes()).map(({ kit_id }) => kit_id);
    const kits = options.kit.length > 0 ? options.kit.map((id) => id.toLowerCase()) : known;
    const missing = kits.find((kit_id) => !known.includes(kit_id));
    if (missing !== undefined || kits.length === 0) {
      complain(shell, missing === undefined ? texts.no_history : texts.no_history_of(missing));
      return exit.failed;
    }
    // A file of this name is always complete. The name of the unfinished one cannot be guessed, so no link can be placed there.
    const partial = `${file}.${randomUUID()}.part`;
    try {
      const packed = file.endsWith('.gz') ? [createGzip()] : [];
      const target = createWriteStream(partial, { flags: 'wx', mode: 0o600 });
      await pipeline([Readable.from(linesOf(store, kits)), ...packed, target], { signal: shell.signal });
      // Another export may have written it meanwhile.
      if (await isTaken(file, options, shell)) {
        await rm(partial, { force: true });
        return exit.failed;
      }
      await rename(partial, file);
    } catch (error) {
      await rm(partial, { force: true });
      complain(shell, texts.not_exported(file, messageOf(error)));
      return exit.failed;
    }
    if (options.json) printJson(shell, { kits, file });
    else say(shell, texts.exported(kits.length, file));
    return exit.ok;
  });
}

/** A misspelt path must not become an empty database. */
async function lacksDatabase(options: DatabaseOptions, shell: Shell): Promise<boolean> {
  const file = await missingFile(options);
  if (file !== undefined) complain(shell, texts.no_database(file));
  return file !== undefined;
}

/** An older export may be the only one of what the service does not keep any more. */
async function isTaken(file: string, { force }: ExportOptions, shell: Shell): Promise<boolean> {
  if (force === true) return false;
  const exists = await lstat(file).then(
    () => true,
    () => false,
  );
  if (exists) complain(shell, texts.export_exists(file));
  return exists;
}

export async function importHistory(file: string, options: DatabaseOptions, shell: Shell): Promise<number> {
  return withStore(options, async (store) => {
    try {
      const read = async (source: AsyncIterable<Uint8Array>): Promise<Imported> =>
        importLines(store, linesIn(source), Date.now);
      const source = createReadStream(file);
      const { signal } = shell;
      const imported = file.endsWith('.gz')
        ? await pipeline(source, createGunzip(), read, { signal })
        : await pipeline(source, read, { signal });
      await divide(store, shell.signal);
      if (options.json) printJson(shell, imported);
      else say(shell, texts.imported(imported.messages, imported.kits));
      return exit.ok;
    } catch (error) {
      if (error instanceof ExportUnreadable) await divide(store, shell.signal);
      complain(shell, texts.not_imported(file, messageOf(error)));
      return exit.failed;
    }
  });
}

async function* linesOf(store: Store, kits: readonly string[]): AsyncGenerator<string, void, undefined> {
  for (const [at, kit_id] of kits.entries()) yield* exportKit(store, kit_id, kits.length - at - 1);
}

/** Divides what was imported, so that the service answers at once as the other one did. */
async function divide(store: HistoryStore, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && (await store.compactHistory(Date.now(), true)) > 0);
  while (!signal.aborted && (await store.rollUpHistory(Date.now())));
}

function shown({ kit_id, messages, bytes, lo_ms, hi_ms }: KitSize) {
  const iso = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());
  return { kit_id, messages, bytes, from: iso(lo_ms), to: iso(hi_ms) };
}
