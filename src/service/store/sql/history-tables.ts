/**
 * The tables of the history. `kit_id` is part of every key and nothing refers to another table, so that a database may
 * distribute them by kit. Bodies are those of `history/segment.ts`; SQLite takes the type of PostgreSQL for them.
 */

export const history_tables: readonly string[] = [
  // What a commit brought of a kit, until the compactor has divided it. `id` rises with the time of arrival.
  `CREATE TABLE IF NOT EXISTS history_in (
     kit_id TEXT NOT NULL, id TEXT NOT NULL, landed_ms BIGINT NOT NULL, messages BIGINT NOT NULL, body BYTEA NOT NULL,
     PRIMARY KEY (kit_id, id))`,
  // Messages of one kit, class, epoch and UTC day. `misdated`: the day is that of the arrival.
  `CREATE TABLE IF NOT EXISTS history (
     kit_id TEXT NOT NULL, id TEXT NOT NULL, class TEXT NOT NULL, day BIGINT NOT NULL, epoch BIGINT NOT NULL,
     lo_seq BIGINT NOT NULL, hi_seq BIGINT NOT NULL, lo_ms BIGINT NOT NULL, hi_ms BIGINT NOT NULL,
     messages BIGINT NOT NULL, bytes BIGINT NOT NULL, misdated BIGINT NOT NULL DEFAULT 0, body BYTEA NOT NULL,
     PRIMARY KEY (kit_id, id))`,
  `CREATE INDEX IF NOT EXISTS history_by_time ON history (kit_id, class, lo_ms)`,
  `CREATE INDEX IF NOT EXISTS history_by_number ON history (kit_id, class, epoch, lo_seq)`,
  `CREATE INDEX IF NOT EXISTS history_by_day ON history (class, day)`,
  // Figures of a feed for each ten minutes of a day, up to `to_ms`: see `history/day-figures.ts`.
  `CREATE TABLE IF NOT EXISTS history_days (
     kit_id TEXT NOT NULL, channel TEXT NOT NULL, day BIGINT NOT NULL, to_ms BIGINT NOT NULL, body BYTEA NOT NULL,
     PRIMARY KEY (kit_id, channel, day))`,
  // Days of segments. `changed`: some were stored since the figures were made, the earliest of `lo_ms`; `mark` rises with each.
  `CREATE TABLE IF NOT EXISTS history_changed (
     kit_id TEXT NOT NULL, day BIGINT NOT NULL, mark BIGINT NOT NULL, changed BIGINT NOT NULL, lo_ms BIGINT NOT NULL,
     rolled_ms BIGINT NOT NULL DEFAULT 0, PRIMARY KEY (kit_id, day))`,
  // What kits reported on `drops`.
  `CREATE TABLE IF NOT EXISTS history_holes (
     kit_id TEXT NOT NULL, epoch BIGINT NOT NULL, lo BIGINT NOT NULL, hi BIGINT NOT NULL, lane TEXT NOT NULL,
     reason TEXT NOT NULL, messages BIGINT NOT NULL, reported_ms BIGINT NOT NULL,
     PRIMARY KEY (kit_id, epoch, lo, hi, lane, reason))`,
  // What was erased: nothing observed before `before_ms` is stored again. An empty `asset_id` stands for the whole kit.
  `CREATE TABLE IF NOT EXISTS history_erased (
     kit_id TEXT NOT NULL, asset_id TEXT NOT NULL, before_ms BIGINT NOT NULL, erased_ms BIGINT NOT NULL,
     PRIMARY KEY (kit_id, asset_id))`,
];

/** Tables and indexes of the history that outlive the process everywhere; what has landed does on a server only. */
export const lasting_history: ReadonlySet<string> = new Set([
  'history',
  'history_by_time',
  'history_by_number',
  'history_by_day',
  'history_days',
  'history_changed',
  'history_holes',
  'history_erased',
]);
