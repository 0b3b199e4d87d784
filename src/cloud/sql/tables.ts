/**
 * The tables of the service, as numbered steps. Stamps order values: see `cloud/store/apply/newest.ts`. `kit_id` is part of every key of what
 * kits report, and nothing refers to another table.
 */

/**
 * Where a service on the gateway of its kit has a table. `kit`: in memory, since the kit sends it again at every start. `lasting`: in its file.
 * `history`: in the file of the history. Elsewhere everything is in one database.
 */
export type Kept = 'kit' | 'lasting' | 'history';

/** What a step adds. What exists already is left as it is. */
export type Addition =
  | { readonly kind: 'table'; readonly name: string; readonly columns: string; readonly kept: Kept }
  /** `on`: columns and conditions. */
  | { readonly kind: 'index'; readonly name: string; readonly table: string; readonly on: string }
  | {
      readonly kind: 'column';
      readonly table: string;
      readonly name: string;
      readonly type: string;
      /** Gives the rows of before their values. */
      readonly fill: string | undefined;
    };

/** How the tables of a version differ from those of the one before. */
export interface Step {
  /** Rises with each step. A change first only adds, so that the version before still writes beside this one (decision 0044). */
  readonly version: number;
  /** The oldest version whose writing this one understands. */
  readonly writers_from: number;
  readonly adds: readonly Addition[];
}

const table = (name: string, columns: string, kept: Kept = 'kit'): Addition => ({
  kind: 'table',
  name,
  columns,
  kept,
});
const index = (name: string, of: string, on: string): Addition => ({ kind: 'index', name, table: of, on });
/** `of`: the table. */
const column = (of: string, name: string, type: string, fill?: string): Addition => ({
  kind: 'column',
  table: of,
  name,
  type,
  fill,
});

const stamp = 'time_ms BIGINT NOT NULL, epoch BIGINT NOT NULL, seq BIGINT NOT NULL, unsynced BIGINT NOT NULL';

/** Tables that an erasure deletes from, or whose former rows may hold what it covers. */
export const erasable_tables = [
  'history_in',
  'history',
  'history_days',
  'feeds',
  'partner_fixes',
  'kit_parts',
  'tasks',
  'webhook_messages',
  'alarms',
  'files',
] as const;

/** Columns of these tables that hold what kits reported. PostgreSQL keeps examples of values in its statistics, but not of these. */
export const content_columns: readonly (readonly [
  table: (typeof erasable_tables)[number] | 'kits',
  column: string,
])[] = [
  ['history_in', 'body'],
  ['history', 'body'],
  ['history_days', 'body'],
  ['kits', 'losses'],
  ['feeds', 'data'],
  ['partner_fixes', 'data'],
  ['kit_parts', 'data'],
  ['tasks', 'payload'],
  ['tasks', 'result'],
  ['tasks', 'progress'],
  ['alarms', 'message'],
  ['files', 'data'],
  ['files', 'thumbnail'],
];

/**
 * Tables whose rows nearly every commit replaces. Their pages keep room in PostgreSQL, so that the new version of a row stands in the
 * page of the old one and no index changes: half of the updates of `kits` and four of five of `received_blocks` changed them.
 */
export const updated_tables = ['kits', 'kit_parts', 'feeds', 'received_blocks'] as const;

/** Without history: the newest values, tasks and keys. */
const newest_values: readonly Addition[] = [
  table('service', `name TEXT PRIMARY KEY, value TEXT NOT NULL`, 'lasting'),
  table(
    'kits',
    `kit_id TEXT PRIMARY KEY, name TEXT, state TEXT, state_epoch BIGINT NOT NULL DEFAULT 0, state_seq BIGINT NOT NULL DEFAULT 0,
     heard_ms BIGINT, since_ms BIGINT, received BIGINT NOT NULL DEFAULT 0, duplicates BIGINT NOT NULL DEFAULT 0,
     dropped BIGINT NOT NULL DEFAULT 0, superseded BIGINT NOT NULL DEFAULT 0, refused BIGINT NOT NULL DEFAULT 0`,
  ),
  table(
    'kit_parts',
    `kit_id TEXT NOT NULL, part TEXT NOT NULL, data TEXT NOT NULL, ${stamp}, PRIMARY KEY (kit_id, part)`,
  ),
  table(
    'received',
    `kit_id TEXT NOT NULL, epoch BIGINT NOT NULL, ranges TEXT NOT NULL, PRIMARY KEY (kit_id, epoch)`,
  ),
  table(
    'received_blocks',
    `kit_id TEXT NOT NULL, epoch BIGINT NOT NULL, block BIGINT NOT NULL, seen TEXT NOT NULL, numbers BIGINT NOT NULL,
     lowest BIGINT NOT NULL, highest BIGINT NOT NULL, touched_ms BIGINT NOT NULL, PRIMARY KEY (kit_id, epoch, block)`,
  ),
  table(
    'assets',
    `kit_id TEXT NOT NULL, asset_id TEXT NOT NULL, data TEXT NOT NULL, gone BIGINT NOT NULL DEFAULT 0,
     partner BIGINT NOT NULL DEFAULT 0, ${stamp}, PRIMARY KEY (kit_id, asset_id)`,
    'lasting',
  ),
  table(
    'partner_fixes',
    `kit_id TEXT NOT NULL, asset_id TEXT NOT NULL, data TEXT NOT NULL, alt_m DOUBLE PRECISION, time_ms BIGINT NOT NULL,
     PRIMARY KEY (kit_id, asset_id)`,
    'lasting',
  ),
  table(
    'partner_sync',
    `kit_id TEXT NOT NULL, asset_id TEXT NOT NULL, revision BIGINT NOT NULL, gone BIGINT NOT NULL, peer_revision BIGINT,
     fix_sent_ms BIGINT NOT NULL, created_by TEXT, epoch BIGINT NOT NULL DEFAULT 0, seq BIGINT NOT NULL DEFAULT 0,
     PRIMARY KEY (kit_id, asset_id)`,
    'lasting',
  ),
  table('rosters', `kit_id TEXT PRIMARY KEY, assets TEXT NOT NULL, ${stamp}`),
  table(
    'asset_status',
    `kit_id TEXT NOT NULL, asset_id TEXT NOT NULL, status TEXT NOT NULL, reason TEXT, ${stamp},
     PRIMARY KEY (kit_id, asset_id)`,
  ),
  table(
    'commands',
    `kit_id TEXT NOT NULL, asset_id TEXT NOT NULL, data TEXT NOT NULL, ${stamp}, PRIMARY KEY (kit_id, asset_id)`,
    'lasting',
  ),
  table(
    'feeds',
    `kit_id TEXT NOT NULL, asset_id TEXT NOT NULL, feed TEXT NOT NULL, data TEXT NOT NULL, ${stamp},
     PRIMARY KEY (kit_id, asset_id, feed)`,
  ),
  table(
    'tasks',
    `kit_id TEXT NOT NULL, task_id TEXT NOT NULL, asset_id TEXT NOT NULL, command_name TEXT NOT NULL, payload TEXT NOT NULL,
     status TEXT NOT NULL, revision BIGINT NOT NULL, result TEXT NOT NULL, progress TEXT, requested_by TEXT NOT NULL,
     created_ms BIGINT NOT NULL, updated_ms BIGINT NOT NULL, PRIMARY KEY (kit_id, task_id)`,
    'lasting',
  ),
  index('tasks_by_age', 'tasks', `(kit_id, created_ms)`),
  table(
    'api_keys',
    `key_id TEXT PRIMARY KEY, user_id TEXT NOT NULL, label TEXT NOT NULL, hash TEXT NOT NULL, scopes TEXT NOT NULL,
     kits TEXT NOT NULL, created_ms BIGINT NOT NULL, expires_ms BIGINT`,
    'lasting',
  ),
  table('key_uses', `key_id TEXT PRIMARY KEY, used_ms BIGINT NOT NULL`, 'lasting'),
  table(
    'answers',
    `key_id TEXT NOT NULL, idempotency_key TEXT NOT NULL, request TEXT NOT NULL, answer TEXT, created_ms BIGINT NOT NULL,
     PRIMARY KEY (key_id, idempotency_key)`,
    'lasting',
  ),
  table('sessions', `hash TEXT PRIMARY KEY, key_id TEXT NOT NULL, expires_ms BIGINT NOT NULL`, 'lasting'),
];

/** The history (`history/`): bodies are those of `history/segment.ts`. */
const history: readonly Addition[] = [
  // What a commit brought of a kit, until the compactor has divided it. `id` rises with the time of arrival.
  table(
    'history_in',
    `kit_id TEXT NOT NULL, id TEXT NOT NULL, landed_ms BIGINT NOT NULL, messages BIGINT NOT NULL, body BYTEA NOT NULL,
     PRIMARY KEY (kit_id, id)`,
  ),
  // Messages of one kit, class, epoch and UTC day. `misdated`: the day is that of the arrival.
  table(
    'history',
    `kit_id TEXT NOT NULL, id TEXT NOT NULL, class TEXT NOT NULL, day BIGINT NOT NULL, epoch BIGINT NOT NULL,
     lo_seq BIGINT NOT NULL, hi_seq BIGINT NOT NULL, lo_ms BIGINT NOT NULL, hi_ms BIGINT NOT NULL,
     messages BIGINT NOT NULL, bytes BIGINT NOT NULL, misdated BIGINT NOT NULL DEFAULT 0, body BYTEA NOT NULL,
     PRIMARY KEY (kit_id, id)`,
    'history',
  ),
  index('history_by_time', 'history', `(kit_id, class, lo_ms)`),
  index('history_by_number', 'history', `(kit_id, class, epoch, lo_seq)`),
  index('history_by_day', 'history', `(class, day)`),
  // Figures of a feed for each ten minutes of a day, up to `to_ms`: see `history/figures.ts`.
  table(
    'history_days',
    `kit_id TEXT NOT NULL, channel TEXT NOT NULL, day BIGINT NOT NULL, to_ms BIGINT NOT NULL, body BYTEA NOT NULL,
     PRIMARY KEY (kit_id, channel, day)`,
    'history',
  ),
  // Days of segments. `changed`: some were stored since the figures were made, the earliest of `lo_ms`; `mark` rises with each.
  table(
    'history_changed',
    `kit_id TEXT NOT NULL, day BIGINT NOT NULL, mark BIGINT NOT NULL, changed BIGINT NOT NULL, lo_ms BIGINT NOT NULL,
     rolled_ms BIGINT NOT NULL DEFAULT 0, PRIMARY KEY (kit_id, day)`,
    'history',
  ),
  // What kits reported on `drops`.
  table(
    'history_holes',
    `kit_id TEXT NOT NULL, epoch BIGINT NOT NULL, lo BIGINT NOT NULL, hi BIGINT NOT NULL, lane TEXT NOT NULL,
     reason TEXT NOT NULL, messages BIGINT NOT NULL, reported_ms BIGINT NOT NULL,
     PRIMARY KEY (kit_id, epoch, lo, hi, lane, reason)`,
    'history',
  ),
  // What was erased: nothing observed before `before_ms` is stored again. An empty `asset_id` stands for the whole kit.
  table(
    'history_erased',
    `kit_id TEXT NOT NULL, asset_id TEXT NOT NULL, before_ms BIGINT NOT NULL, erased_ms BIGINT NOT NULL,
     PRIMARY KEY (kit_id, asset_id)`,
    'history',
  ),
];

/** Webhooks. The length of a queue is derived: accepted - delivered - dead - purged. */
const webhooks: readonly Addition[] = [
  table(
    'webhooks',
    `webhook_id TEXT PRIMARY KEY, label TEXT NOT NULL, url TEXT NOT NULL, types TEXT NOT NULL, kits TEXT NOT NULL,
     key_id TEXT NOT NULL, secrets TEXT NOT NULL, created_ms BIGINT NOT NULL, disabled_reason TEXT,
     failing_since_ms BIGINT, failures BIGINT NOT NULL DEFAULT 0, pause_until_ms BIGINT NOT NULL DEFAULT 0, last_fault TEXT,
     delivered_ms BIGINT, accepted BIGINT NOT NULL DEFAULT 0, delivered BIGINT NOT NULL DEFAULT 0,
     dead BIGINT NOT NULL DEFAULT 0, purged BIGINT NOT NULL DEFAULT 0, missed BIGINT NOT NULL DEFAULT 0`,
    'lasting',
  ),
  // `state`: waiting or dead. `lease` is empty while no process delivers it.
  table(
    'webhook_messages',
    `webhook_id TEXT NOT NULL, id TEXT NOT NULL, type TEXT NOT NULL, kit_id TEXT NOT NULL, asset_id TEXT,
     time_ms BIGINT NOT NULL, body TEXT NOT NULL, state TEXT NOT NULL, queued_ms BIGINT NOT NULL,
     attempts BIGINT NOT NULL DEFAULT 0, next_ms BIGINT NOT NULL, lease TEXT NOT NULL DEFAULT '',
     lease_ms BIGINT NOT NULL DEFAULT 0, dead_ms BIGINT, reason TEXT, PRIMARY KEY (webhook_id, id)`,
    'lasting',
  ),
  index('webhook_messages_due', 'webhook_messages', `(webhook_id, state, next_ms)`),
];

/**
 * Columns that later versions added to the tables of the first. An older version ignores them, and those added so far left the version at 2:
 * the releases that have no `writers_from` refuse to start on any other.
 */
const added_columns: readonly Addition[] = [
  column('kits', 'vouched_ms', 'BIGINT'),
  // When a kit was last present whose silence was announced; null: it is not silent.
  column('kits', 'silent_ms', 'BIGINT'),
  // What was refused and dropped lately, as JSON (`losses.ts`); null: nothing.
  column('kits', 'losses', 'TEXT'),
  // Messages in `history_in`, and since when there are some.
  column('kits', 'landed', 'BIGINT NOT NULL DEFAULT 0'),
  column('kits', 'landed_ms', 'BIGINT NOT NULL DEFAULT 0'),
  // Tasks of earlier versions have fifteen minutes.
  column(
    'tasks',
    'due_ms',
    'BIGINT',
    `UPDATE tasks SET due_ms = created_ms + 900000 WHERE status = 'pending' AND due_ms IS NULL`,
  ),
  column('tasks', 'requested_by_name', 'TEXT'),
  // What the kit reported as dropped of the epoch; null: an earlier version has not kept it apart.
  column('received', 'dropped', 'BIGINT'),
  index('tasks_due', 'tasks', `(due_ms) WHERE status = 'pending' AND revision = 0`),
];

/** Alarms, and what filters webhooks. */
const alarms: readonly Addition[] = [
  table(
    'alarms',
    `kit_id TEXT NOT NULL, alarm_id TEXT NOT NULL, what TEXT NOT NULL, thing TEXT NOT NULL, subject TEXT, severity TEXT NOT NULL,
     assets TEXT NOT NULL, value DOUBLE PRECISION, message TEXT, since_ms BIGINT NOT NULL, last_ms BIGINT NOT NULL,
     count BIGINT NOT NULL, closed_ms BIGINT, ends_ms BIGINT, acknowledged_by TEXT, acknowledged_ms BIGINT,
     muted_until_ms BIGINT, note TEXT, revision BIGINT NOT NULL, changed_ms BIGINT NOT NULL, PRIMARY KEY (kit_id, alarm_id)`,
    'lasting',
  ),
  index('alarms_open', 'alarms', `(kit_id) WHERE closed_ms IS NULL`),
  index('alarms_by_time', 'alarms', `(since_ms, alarm_id)`),
  // Null: all.
  column('webhooks', 'assets', 'TEXT'),
  column('webhooks', 'severity_min', 'TEXT'),
  // When late messages of the kit came last, and when its conditions may change without a message.
  column('kits', 'late_ms', 'BIGINT'),
  column('kits', 'look_ms', 'BIGINT'),
];

/**
 * The order of arrival. What an earlier version stored has no place in it: 0. A number is the time of the commit, greater than that of
 * the commit before it of the same kit, whatever replica made it, and is given with the row of the kit locked.
 */
const arrivals: readonly Addition[] = [
  column('kits', 'arrived_ms', 'BIGINT NOT NULL DEFAULT 0'),
  column('history_in', 'arrived_ms', 'BIGINT NOT NULL DEFAULT 0'),
  column('history', 'arrived_lo_ms', 'BIGINT NOT NULL DEFAULT 0'),
  column('history', 'arrived_hi_ms', 'BIGINT NOT NULL DEFAULT 0'),
  index('history_by_arrival', 'history', `(kit_id, arrived_hi_ms, arrived_lo_ms)`),
];

/** Files of kits. `stored_ms`: when the content, or the newest part of it, came into the folder; null: nothing is there. */
const files: readonly Addition[] = [
  table(
    'files',
    `kit_id TEXT NOT NULL, file_id TEXT NOT NULL, kind TEXT NOT NULL, asset_id TEXT, at_ms BIGINT NOT NULL, bytes BIGINT NOT NULL,
     data TEXT NOT NULL, thumbnail TEXT, state TEXT NOT NULL, reason TEXT, received BIGINT NOT NULL, ordered_ms BIGINT,
     stored_ms BIGINT, token_hash TEXT, token_ms BIGINT, epoch BIGINT NOT NULL, seq BIGINT NOT NULL, PRIMARY KEY (kit_id, file_id)`,
    'lasting',
  ),
  index('files_by_time', 'files', `(kit_id, at_ms)`),
  index('files_stored', 'files', `(stored_ms) WHERE stored_ms IS NOT NULL`),
];

/** The newest event of each thing of a kit that alarms are about, as JSON (`alarms/follow.ts`). */
const things: readonly Addition[] = [column('kits', 'things', 'TEXT')];

/** Files that show an alarm, and permits that promise room. */
const shown: readonly Addition[] = [
  column('alarms', 'files', `TEXT NOT NULL DEFAULT '[]'`),
  index('files_permitted', 'files', `(token_ms) WHERE token_hash IS NOT NULL`),
];

/** A new database takes all of them, one of an earlier version what it lacks. */
export const steps: readonly Step[] = [
  { version: 1, writers_from: 1, adds: newest_values },
  { version: 2, writers_from: 2, adds: [...added_columns, ...history, ...webhooks] },
  { version: 3, writers_from: 2, adds: alarms },
  {
    version: 4,
    writers_from: 2,
    adds: [column('api_keys', 'old_hash', 'TEXT'), column('api_keys', 'old_until_ms', 'BIGINT')],
  },
  { version: 5, writers_from: 2, adds: arrivals },
  { version: 6, writers_from: 2, adds: files },
  { version: 7, writers_from: 2, adds: things },
  { version: 8, writers_from: 2, adds: shown },
  { version: 9, writers_from: 2, adds: [column('alarms', 'unheard', 'TEXT')] },
  {
    version: 10,
    writers_from: 2,
    adds: [
      column('alarms', 'notified', 'TEXT'),
      column('kits', 'lag_ms', 'BIGINT'),
      column('kits', 'lag_since_ms', 'BIGINT'),
    ],
  },
];
