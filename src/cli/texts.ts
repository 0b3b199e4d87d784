/** Sentences of the command line that people read; tests refer to them by name. */

const counted = (count: number, one: string, many: string): string =>
  `${count.toLocaleString('en')} ${count === 1 ? one : many}`;

/** By item of `assetHealth`. */
const not_delivered: ReadonlyMap<string, string> = new Map([
  ['state', 'incomplete state'],
  ['stream', 'no video'],
  ['still', 'no pictures'],
]);

export const texts = {
  unwritable: (path: string, reason: string, remedy: string) => `cannot write ${path} (${reason}); ${remedy}`,
  dir_unwritable: (dir: string, user: string, remedy: string) =>
    `${user} cannot write ${dir} (permission denied); ${remedy}, or choose another directory`,
  dir_not_made: (key: string, dir: string, reason: string) =>
    `${key}: cannot create ${dir} (${reason}); create it, or choose another directory`,
  kit: 'kit',
  task: 'task',
  unknown: 'unknown',
  /** An asset that is online and does not deliver everything. */
  degraded: 'degraded',
  not_delivered: (item: string) => not_delivered.get(item) ?? `no ${item}`,
  next_try: (at: string) => `next try ${at}`,
  /** After an argument too many. */
  config_hint: 'A configuration file is named by --config FILE.',
  no_position: 'no driver has reported a position yet',
  no_power_driver: 'driver power is not configured',
  no_battery: 'no battery was found',
  no_broker: 'no broker is configured',
  /** A removed asset. */
  removed: 'removed',
  /** A cleared retained topic. */
  cleared: 'cleared',
  memory: ' % memory',
  picture_size: (kib: number) => `picture of ${kib} KiB`,
  assets: (count: number) => counted(count, 'asset', 'assets'),
  clients: (count: number) => counted(count, 'client', 'clients'),
  battery: (percent: number, charging: boolean | null | undefined) =>
    `battery ${Math.round(percent)} %${charging === true ? ' charging' : ''}`,
  skipped: (lines: number) =>
    `... ${counted(lines, 'line was', 'lines were')} skipped; this client reads too slowly`,
  last_report: (ago: string) => `last report, ${ago} ago:`,
  bundling: 'support bundle',
  bundle_steps: {
    config: 'reading the configuration',
    doctor: 'running the doctor',
    system: 'reading the system',
    daemon: 'querying the daemon',
    compress: 'compressing',
  },
  no_commands: 'it has no commands now',
  limit: (ms: number) => `Limit ${Math.round(ms / 1_000)} s.`,
  optional: 'optional',
  default_value: (value: string) => `default ${value}`,
  from_to: (min: number, max: number) => `${min} to ${max}`,
  any_value: 'any value',
  payload_hint: `A payload is a JSON object: kit-connector task ASSET COMMAND '{"field": value}'`,
  draining: 'draining',
  waiting: (count: number, reason: string) => `${counted(count, 'message', 'messages')} waiting: ${reason}`,
  salvage: 'salvaging',
  salvaged: (saved: number, expected: number | null) =>
    expected === null
      ? counted(saved, 'message', 'messages')
      : `${counted(saved, 'message', 'messages')} of ${expected.toLocaleString('en')}`,
  messages_left: (count: number) => `${counted(count, 'message', 'messages')} left`,
  per_second: (rate: number) => `${Math.round(rate).toLocaleString('en')}/s`,
  time_left: (time: string) => `${time} left`,

  internal_error: 'internal error; exiting',
  opening_buffer: 'opening the buffer',
  salvaging: 'salvaging messages from the buffer file',
  clock_back: 'clock stepped back; earlier times may be ahead',
  clock_forward: 'clock stepped forward',
  stop_timed_out: (seconds: number) => `shutdown timed out after ${seconds} s; data on disk is safe`,
  embedded_broker_started: 'no broker configured; started the embedded broker',
  metrics_restored: 'metrics endpoint restored',
  metrics_unavailable: 'metrics endpoint unavailable; retrying',
  configuration_not_applied: 'configuration could not be applied; restart kit-connector',
  configuration_rejected: 'configuration rejected; the previous one stays in effect',
  no_progress: 'daemon made no progress; systemd will restart it if this continues',
  file_size: (size: string, free: string) => `file ${size}, ${free} free on its disk`,
  in_quarantine: (messages: number) =>
    `${messages} in quarantine; list them with kit-connector buffer quarantine list`,
  quarantine_empty: 'the quarantine is empty',
  and_more: (more: number) => `and ${more} more`,
  rows_returned: (rows: number) => `${rows} returned to the buffer`,
  no_such_id: 'no such id is in quarantine',
  ids_missing: (missing: number) => `${missing} of these ids are not in quarantine`,
  list_ids: (what: string) => `${what}; "kit-connector buffer quarantine list" lists the ids`,
  no_ids: 'no ids given; name them or add --all (kit-connector buffer quarantine list shows the ids)',
  invalid_time: (time: string) => `"${time}" is not a duration up to 24h; write it like 90s, 10m or 2h`,
  invalid_level: (setting: string, what_to_write: string) =>
    `"${setting}" is not a valid setting; ${what_to_write}`,
  write_level: 'write a level (debug, info, warn, error, fatal, or reset), or NAME=LEVEL',
  key_shown_once: 'The key is shown only once and is not stored:',
  authority_made: (dir: string) =>
    `made the authority of the kits in ${dir}; keep ca.key secret, and keep a copy of it`,
  kit_id_no_uuid: '--kit-id is not a UUID; uuidgen makes one, and without it the kit gets a new one',
  openssl_missing: 'openssl is not installed; apt install openssl, or use --password',
  enrolment_exists: (file: string) => `${file} already exists; choose another name with --out`,
  no_enrolment: (file: string) => `${file} is no file of "kit-connector service enrol"`,
  enrolled: (name: string, kit_id: string, file: string) =>
    `${name} is ${kit_id}. ${file} has its login: bring it to the kit, run "kit-connector setup --from ${file}" there, and delete it`,
  /** Of one broker: what is typed or written there. */
  enrol_for: (broker: string) => `for ${broker}:`,
  service: 'service',
  service_states: { unready: 'not ready', stopped: 'stopped', unknown: 'unknown' },
  no_tables: 'no tables yet: the service makes them at its first start',
  tables_version: (schema: number) => `tables of version ${schema}`,
  kits_of: (known: number, online: number, last: string | undefined) =>
    `${known}, ${online} online${last === undefined ? '' : `, last message ${last}`}`,
  webhooks_of: (webhooks: number, waiting: number, dead: number) =>
    `${webhooks}, ${counted(waiting, 'message', 'messages')} waiting, ${dead} given up`,
  no_kits: 'no kits given; add --kit UUID, or --all-kits',
  invalid_uuid: '--kit is not a UUID; write it like --kit 0f8c1a52-...',
  invalid_scope: (unknown: string, scopes: string) => `"${unknown}" is not a scope; use ${scopes}`,
  no_api_keys: 'No API keys.',
  key_changed: (key_id: string) => `API key ${key_id} changed.`,
  key_revoked: (key_id: string) => `API key ${key_id} revoked.`,
  key_not_found: (key_id: string) => `API key ${key_id} not found; "service key list" shows all keys.`,
  no_backup_of_postgres: 'this database is PostgreSQL; back it up with pg_dump, or as its hoster does',
  copy_to_postgres: (database: string) =>
    `${database} is no PostgreSQL; set "database" in the configuration to the one that takes the copy`,
  no_source: (file: string) =>
    `${file} does not exist; name the SQLite file of the service, or a backup of it`,
  not_empty: (database: string) =>
    `${database} has kits, keys or webhooks already; give the copy an empty one`,
  copied: (rows: number, from: string, to: string) => `Copied ${rows} rows from ${from} to ${to}.`,
  backup_exists: (to: string) => `${to} exists; choose another name, or replace it with --force`,
  backup_failed: (file: string, to: string, reason: string) =>
    `no backup of ${file} was made at ${to}: ${reason}; check the disk, its room and the rights of this user`,
  backed_up: (file: string, to: string, bytes: string) =>
    `Backup of ${file}: ${to}, ${bytes}. It holds API keys and messages; keep it as safe as the service.`,
  tables_upgraded: (database: string) => `The tables of ${database} are up to date.`,
  no_history: 'No kit has history.',
  no_database: (file: string) => `${file} does not exist; name the database of the service with --database`,
  no_history_of: (kit_id: string) =>
    `kit ${kit_id} has no history; "kit-connector history list" shows the kits that have`,
  export_exists: (file: string) => `${file} already exists; choose another name, or replace it with --force`,
  exported: (kits: number, file: string) => `history of ${counted(kits, 'kit', 'kits')} written to ${file}`,
  not_exported: (file: string, reason: string) => `${file} not written: ${reason}`,
  imported: (messages: number, kits: number) =>
    `${counted(messages, 'message', 'messages')} of ${counted(kits, 'kit', 'kits')} read`,
  not_imported: (file: string, reason: string) => `import of ${file} stopped: ${reason}`,
  no_key_exists: 'no API key exists; clients cannot authenticate (kit-connector service key add)',
  no_answer: (where: string, reason: string) => `${where} does not answer (${reason})`,
  first_key_added: 'first API key taken from first_key_file',
  first_key_unused: 'first_key_file ignored; other API keys exist (kit-connector service key list)',
  weak_first_key: (config: string, file: string) =>
    `${config}: first_key_file: ${file} holds no API key, or one that can be guessed; make one with "echo kc_$(openssl rand -hex 6)_$(openssl rand -hex 16)"`,
  configuration_exists: (file: string) =>
    `${file} already exists; edit it, change it with --force (a copy is kept beside it, other settings stay), or change the login alone with "kit-connector login"`,
  previous_kept: (path: string) =>
    `previous configuration kept as ${path}; what setup does not ask for stays as it was`,
  too_many_copies: (path: string) => `too many copies beside ${path}; remove the ones that are not needed`,
  daemon_is_running: 'kit-connector is running; devices on the ports that it uses are not found',
  scanning: (seconds: number) => `scanning for devices for ${seconds} s ...`,
  restart_daemon: 'restart kit-connector',
  restart_service: 'systemctl restart kit-connector',
  run_daemon: (file: string) => `kit-connector run --config ${file}`,
  run_doctor: (file: string) => `kit-connector doctor --config ${file}`,
  next_steps: (start: string, look: string, drivers: number) =>
    `next: ${start}, then ${look} (${drivers} drivers)`,
  ask_kit_name: 'display name of the kit',
  ask_username_of: (broker = 'the broker', words?: string) =>
    `user name at ${broker}${words === undefined ? '' : ` (${words})`}`,
  ask_certificate: (broker: string) => `client certificate for ${broker}, a PEM file (none: no certificate)`,
  ask_key: 'its private key, a PEM file',
  ask_ca: 'CA certificate of the broker, a PEM file (none: the authorities of this system)',
  how_to_answer: 'Enter takes what stands in brackets, < goes back to the question before.',
  the_broker: 'the broker',
  needs_ca: 'the authority of the broker is not known to this machine: name its certificate with --ca FILE',
  needs_certificate:
    'the broker requires another client certificate: name it and its private key with --cert FILE --key FILE',
  ask_broker: 'broker, such as mqtts://broker.example.com:8883',
  invalid_kit_id: (answer: string) =>
    `"${answer}" is not a UUID; press Enter to accept the default, or enter the kit id`,
  invalid_broker: (answer: string) =>
    `"${answer}" is not a broker address; write mqtts://host:port, wss://host:port/path, or none`,
  empty_none: 'empty: none',
  empty_keeps: 'empty: keep the previous one',
  ask_password: (words: string) => `password for the broker (${words}): `,
  not_written: (words: string) =>
    `${words}, see above; configuration not written; correct the login, or skip the check with --no-try`,
  written_anyway: (words: string) => `${words}, see above; writing the configuration anyway`,
  ask_write_anyway: (words: string) => `${words}; write the configuration anyway?`,
  ask_correct: 'correct the answers?',
  nothing_written: 'nothing was written',
  answers_faulty: 'the answers have faults',
  nothing_written_because: 'nothing was written:',
  connecting: (url: string) => `connecting to ${url} ...`,
  broker_rejected_login: 'the broker rejected the login of this kit',
  broker_unreachable: 'the broker is not reachable',
  password_file_place: 'the file of --password-file',
  typed_password_place: 'the answers',
  login_needs_id: 'not checked: the kit has no id before its first start',
  login_unchecked:
    'the login was not checked, since kit-connector is connected with the one of before; stop it for the check (systemctl stop kit-connector), or write it unchecked with --no-try',
  no_broker_yet: (file: string) => `${file} names no broker yet; run "kit-connector setup"`,
  login_in_use: 'not checked: a login would end the session of the running kit-connector',
  run_doctor_later: 'run kit-connector doctor when the kit is online',
  asset_removed: (name: string, key: string) =>
    `${name} (${key}) removed; it reappears if its driver connects to it again`,
  waiting_for_asset: (fault: string) => `${fault}; waiting for it (Ctrl-C stops)`,
  did_you_mean: (guess: string) => ` (did you mean "${guess}"?)`,
  feed_not_found: (feed: string, hint: string) =>
    `feed "${feed}" not found${hint}; waiting for it (Ctrl-C stops)`,
  embedded_broker: 'embedded on loopback (none is configured)',
  review_bundle: (path: string, size: string) => `${path} (${size}): review it before you send it`,
  no_journal: (unit: string) =>
    `it has no journal, which root and the group adm can read: add journalctl -u ${unit} --since -7d, or run this with sudo`,
  see_doctor: 'cannot read the file; see doctor.txt',
  create_or_choose: 'create its directory, or choose another path',
  choose_another_path: 'choose another path',
  choose_another_file: 'choose another file',
  name_file_directory: 'name a file in this directory',
  use_sudo: 'use sudo, or choose another path',
  free_space: 'free some space',
  check_disk: 'check the disk',
  no_machine_id:
    'not set, and none is created because this system has no /etc/machine-id; boot it, or set kit_id (uuidgen makes a new one)',
  tls_not_verified:
    'NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment disables certificate verification; remove it, and set broker.ca_file to the CA certificate of the broker',
  cancelled: 'cancelled; configuration not written',
  simulator_failed: (name: string, reason: string) =>
    `${name}: simulated device not started (${reason}); set another port in the configuration`,
} as const;
