/** The tables of the buffer file, how they came to be, and how a handle on the file is opened. */
import { statSync } from 'node:fs';
import Database from 'better-sqlite3';
import { lanes, type Lane } from '../../../contract/lanes.ts';
import { keepPrivate } from '../../../platform/files/private-file.ts';
import { texts } from '../texts.ts';

export type Handle = Database.Database;

export const page_bytes = 4096;
/** The log is written back at this length. */
export const checkpoint_pages = 1000;
const wal_bytes_kept = 16 * 1024 * 1024;
const busy_ms = 5_000;
/** Rows that were read are deleted a few megabytes later; SQLite of better-sqlite3 would keep 16 MB of pages. */
const cache_kib = 4_096;
/** Small rows fill pages well, rows a little over half a page do not: room for the worst of both before SQLite stops. */
const pages_for_bytes = 2.5;
const pages_spare = 16_384;

/**
 * One step from the version before. A step only adds tables and columns that the version before can do without, unless
 * `min_reader` excludes it: it is the oldest version that may still open the file, so that going back by one
 * release works.
 */
interface Migration {
  readonly version: number;
  readonly min_reader: number;
  readonly sql: string;
}

export function laneTable(lane: Lane): string {
  return `lane_${lane}`;
}

/** `bytes` is what the row counts against the limits, so that nothing has to read its body to remove it. */
const lane_columns = `(
  id INTEGER PRIMARY KEY, topic INTEGER NOT NULL, time_ms INTEGER NOT NULL, mono_ms INTEGER,
  bytes INTEGER NOT NULL, body TEXT NOT NULL) STRICT;`;

const migrations: readonly Migration[] = [
  {
    version: 1,
    min_reader: 1,
    sql: `
CREATE TABLE meta (key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
CREATE TABLE depth (lane TEXT PRIMARY KEY, rows INTEGER NOT NULL, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE topics (id INTEGER PRIMARY KEY, channel TEXT NOT NULL UNIQUE) STRICT;
${lanes.map((lane) => `CREATE TABLE ${laneTable(lane)} ${lane_columns}`).join('\n')}
CREATE UNIQUE INDEX newest_presence ON ${laneTable('presence')} (topic);
CREATE TABLE announced (channel TEXT PRIMARY KEY, id INTEGER NOT NULL, body TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE epochs (epoch INTEGER PRIMARY KEY, boot_id TEXT NOT NULL, clock_offset_ms REAL) STRICT;
CREATE TABLE drops (
  epoch INTEGER NOT NULL, lane TEXT NOT NULL, reason TEXT NOT NULL, rows INTEGER NOT NULL,
  lo INTEGER NOT NULL, hi INTEGER NOT NULL, PRIMARY KEY (epoch, lane, reason)) STRICT, WITHOUT ROWID;
CREATE TABLE tasks (
  arrival INTEGER PRIMARY KEY, task_id TEXT NOT NULL UNIQUE, state TEXT NOT NULL, dispatch TEXT NOT NULL,
  result TEXT NOT NULL, received_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL, deadline_ms INTEGER) STRICT;
CREATE TABLE quarantine (
  id INTEGER PRIMARY KEY, lane TEXT NOT NULL, channel TEXT NOT NULL, time_ms INTEGER NOT NULL, mono_ms INTEGER,
  code INTEGER NOT NULL, reason TEXT NOT NULL, body TEXT NOT NULL) STRICT;
CREATE TABLE ages (id INTEGER PRIMARY KEY, age_ms INTEGER NOT NULL) STRICT;
${lanes.map((lane) => `INSERT INTO depth VALUES ('${lane}', 0, 0);`).join('\n')}`,
  },
  {
    version: 2,
    min_reader: 1,
    // A value that is with the broker stays beside the newer one of its topic until its fate is known.
    sql: `
DROP INDEX newest_presence;
CREATE INDEX presence_topics ON ${laneTable('presence')} (topic);`,
  },
];
export const schema_version = migrations.length;

/** The file was written by a later release and cannot be read by this one. */
export class FileTooNew extends Error {
  override readonly name = 'FileTooNew';
}

/**
 * Opens the file, or begins a new one, and brings its tables up to this version.
 * Throws what SQLite throws, and `FileTooNew`.
 */
export function openFile(file: string, bytes_max: number): Handle {
  const fresh = (statSync(file, { throwIfNoEntry: false })?.size ?? 0) === 0;
  // Positions, and tasks with their payloads.
  keepPrivate(file);
  const db = new Database(file, { timeout: busy_ms });
  try {
    if (fresh) {
      db.pragma(`page_size = ${page_bytes}`);
      db.pragma('auto_vacuum = INCREMENTAL');
    }
    db.pragma('journal_mode = WAL');
    db.pragma('synchronous = FULL');
    db.pragma(`cache_size = -${cache_kib}`);
    db.pragma(`wal_autocheckpoint = ${checkpoint_pages}`);
    db.pragma(`journal_size_limit = ${wal_bytes_kept}`);
    db.pragma(`max_page_count = ${Math.ceil((bytes_max / page_bytes) * pages_for_bytes) + pages_spare}`);
    migrate(db);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Reads one value of `meta` as a number; undefined when it is not there. */
export function readMeta(db: Handle, key: string): number | undefined {
  const value = db.prepare<[string], unknown>('SELECT value FROM meta WHERE key = ?').pluck().get(key);
  return typeof value === 'number' ? value : undefined;
}

export function readMetaText(db: Handle, key: string): string | undefined {
  const value = db.prepare<[string], unknown>('SELECT value FROM meta WHERE key = ?').pluck().get(key);
  return typeof value === 'string' ? value : undefined;
}

export function writeMeta(db: Handle, key: string, value: number | string): void {
  db.prepare(
    'INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value',
  ).run(key, value);
}

/** A file of before that names no owner belongs to every kit. */
export function isOtherKit(owner: string | undefined, kit_id: string | undefined): owner is string {
  return owner !== undefined && kit_id !== undefined && owner !== kit_id;
}

export function hasTable(db: Handle, name: string): boolean {
  return db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?").get(name) !== undefined;
}

function migrate(db: Handle): void {
  const version = hasTable(db, 'meta') ? (readMeta(db, 'schema_version') ?? 0) : 0;
  if (version > schema_version) {
    const min_reader = readMeta(db, 'min_reader') ?? version;
    if (min_reader <= schema_version) return;
    throw new FileTooNew(texts.schema_too_new(version, min_reader, schema_version));
  }
  for (const step of migrations.filter((each) => each.version > version)) {
    db.transaction(() => {
      db.exec(step.sql);
      writeMeta(db, 'schema_version', step.version);
      writeMeta(db, 'min_reader', step.min_reader);
    })();
  }
}
