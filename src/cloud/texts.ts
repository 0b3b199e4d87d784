import type { IncomingHttpHeaders } from 'node:http';

/** Sentences of the service that people read: of its log (`log_`), and of what it answers; tests refer to them by name. */
export const texts = {
  log_files_failed: 'files of kits not handled; retrying',
  log_file_hash: 'uploaded file has another hash than announced; the kit sends it again',
  log_file_stored: 'file of kit stored',
  no_file: (file_id: string) => `the kit has no file ${file_id}`,
  no_files_here: 'this service keeps no files of kits',
  no_permit: 'the permit for this upload is missing, wrong or expired',
  upload_type: 'the Content-Type of an upload is application/offset+octet-stream',
  upload_too_long: 'longer than the file that was announced',
  upload_hash: 'the content has another SHA-256 than was announced',
  file_deleted: 'deleted at the cloud',
  file_unknown: 'the cloud does not know the file yet',
  file_lost:
    'files.dir has this content no longer, or not whole; mount its disk, or restore it with the database',
  file_not_here: 'the content is not here; order it with POST .../request',
  file_not_at_kit: 'the content is here already, or the kit has given it up',
  files_full: 'the space for files at the cloud is used up',
  log_history_restored: 'history writes restored',
  log_history_failed: 'history write failed; retrying',
  log_history_dropped: 'disk write failed; history messages dropped',
  log_connections: 'address opened too many connections; refusing more from it',
  log_slow_readers:
    'WebSocket clients read too slowly; sending them new snapshots instead of all that changed',
  log_proxy_silent:
    'trusted proxy named no clients, so that all of them count as one for limits; have it set the header, or change forwarded_header',
  log_client_certificate: 'client certificate rejected; connection closed',
  log_certificate_renewed: 'service certificate renewed; new connections use it',
  log_certificate_warning: 'service certificate needs attention',
  log_certificate_rejected: 'renewed certificate rejected; keeping the old one',
  no_certificate: 'no certificate',
  log_internal_error: 'request failed with an internal error',
  log_key_created: 'API key created',
  log_key_rotated: 'API key rotated; its old secret stays valid for a day',
  log_key_revoked: 'API key revoked',
  log_key_changed: 'API key changed',
  log_keys_failed: 'reading API keys failed; using the keys read before',
  log_ack_refused: 'broker refused an acknowledgement; the kit keeps its messages and sends them again',
  log_too_large: 'kit message exceeded the size limit; discarding it',
  log_connected: 'service connected to the broker',
  log_retained_failed: 'reading retained kit messages failed; retrying at the next connect',
  log_connect_failed: 'broker connection of the service failed; retrying',
  log_message_rejected: 'database rejected a kit message; discarding it',
  log_writes_restored: 'database writes restored',
  log_write_failed: 'database write failed; messages wait for it',
  log_turned_away: 'too many messages waited for the database; turning further ones away',
  log_takes_again:
    'database caught up; messages that were turned away are missing here unless their sender repeats them',
  log_message_invalid: 'kit message violated the contract; ignoring it',
  number_reused: (epoch: number, seq: number, channel: string) =>
    `number ${seq} of epoch ${epoch} came before with another message, on ${channel}: an old copy of the state of the kit may have been put back, or two kits may have one id`,
  log_topic_unknown: 'kit published on a topic that this version does not know; ignoring it',
  log_topic_without_kit: 'message arrived on a topic of no kit; ignoring it',
  log_partner_refused: 'broker refused a change of a partner asset; the kit does not have it',
  log_replicas_restored: 'replica notifications restored',
  log_replicas_lost: 'replica notifications lost; retrying',
  log_sweep_failed: 'check for unanswered tasks failed; retrying',
  log_answer_lost: 'answer to a viewer could not be passed to the other replicas',
  kit_offline: 'the kit is offline',
  no_video: 'the asset has no video',
  answer_too_long: 'it is too long for a notification',
  too_many_offers: 'too many viewers wait for their kits',
  kit_silent: (s: number) => `the kit did not answer the viewer within ${s} s`,
  viewer_not_sent: (reason: string) => `the request of the viewer did not reach the kit: ${reason}`,
  answer_unreadable: (reason: string) => `the answer of the kit cannot be read: ${reason}`,
  sdp_too_large: (chars_max: number) => `the offer has more than ${chars_max} characters`,
  body_not_sdp: 'send the offer with Content-Type: application/sdp',
  kit_online:
    'the kit is online: stop it, or take its login at the broker from it, and remove it when it is offline',
  log_kit_removed: 'kit removed with all that was kept of it',
  no_kit: (kit_id: string) => `there is no kit ${kit_id}`,
  no_asset: (asset_id: string) => `the kit has no asset ${asset_id}`,
  changed_meanwhile: (tag: string) =>
    `its ETag is ${tag} now: read it again, and repeat the change with that`,
  changed_tag: (wanted: string) =>
    `If-Match: ${wanted} never matches: a proxy that compresses has changed the ETag on its way; switch compression off there for this path, or send the ETag without W/ or its suffix`,
  unquoted_tag: (wanted: string) =>
    `If-Match: ${wanted} is no ETag; send it with its quotation marks, as the header ETag has it`,
  no_alarm: (alarm_id: string) => `alarm ${alarm_id} not found`,
  cursor_of_list: 'cursor: send the `next` of the page before',
  log_alarms_failed: 'look at alarms failed; retrying',
  no_task: (task_id: string) => `the kit has no task ${task_id}`,
  no_link: (name: string, known: string) => `the kit has no link "${name}"; its links are: ${known}`,
  no_command: (asset: string, command: string, known: string) =>
    `${asset} has no command "${command}"; its commands are: ${known}`,
  nothing_reported: 'the kit is offline and has reported nothing yet',
  not_reported: (what: string) => `the kit has not reported ${what} yet`,
  payload_mismatch: 'the payload does not match the input_schema',
  no_payload: 'this command takes no payload',
  task_over: (status: string) => `the task is already ${status}`,
  cancel_not_sent: (reason: string) => `the cancellation could not be sent to the kit: ${reason}`,
  kit_not_connected: 'the kit is not connected to the broker',
  service_not_connected: 'the service is not connected to the broker',
  broker_silent: 'the broker did not acknowledge the message in time',
  broker_refused: (reason: string) => `the broker refused the message: ${reason}`,
  locations_partner_only: 'locations can be pushed for partner assets only',
  no_partner: 'is not a partner asset',
  no_such_asset: 'no asset of this kit has this id',
  no_parent: 'the parent asset does not exist',
  partners_max: (max: number) => `a kit has at most ${max} partner assets`,
  metadata_too_large: 'the metadata is too large',
  fix_time: 'the time of the fix is out of range',
  cannot_listen: (host: string, port: number, reason: string) =>
    `the service cannot listen on ${host} port ${port} (${reason}); choose another service.listen`,
  foreign_origin: ({ origin = 'another site', host = '' }: Readonly<IncomingHttpHeaders>) =>
    `a page of ${origin} sent this to the host ${host}: a proxy in front has to pass on the Host header; pages of other origins need a key and cors_origins`,
  foreign_page: 'requests with the session cookie must come from the page of this service',
  host_not_served: (host: string) =>
    `host name "${host}" is not served; add it to hosts in the configuration of the service`,
  body_too_large: (bytes_max: number) => `the body is too large; at most ${bytes_max} bytes`,
  body_not_json: 'send the body as application/json',
  body_coded: (coding: string) => `Content-Encoding ${coding} is not supported; send the body without it`,
  lost_member: 'a member cannot be named __proto__',
  body_rejected: (reason: string) => `the body was rejected: ${reason}`,
  too_many_requests: (wait_s: number) => `too many requests; retry in ${wait_s} s`,
  too_many_keys: (wait_s: number) => `too many invalid keys; retry in ${wait_s} s`,
  no_valid_key: 'send a valid key in the X-API-Key header',
  key_rejected: 'the key cannot be like this',
  own_rights: 'this is the key of the request; change its rights with another one',
  kits_of_key: 'has kits that the key of the request lacks; name kits of that',
  key_end: (end_ms: number | null) =>
    end_ms === null
      ? 'is in the past; send a later time, or leave it out'
      : `send a time from now to ${new Date(end_ms).toISOString()}, the end of the key of this request`,
  key_over: 'the key has expired; create another one',
  own_key: 'this is the key of the request; revoke it with another one',
  no_key: (key_id: string) => `there is no key ${key_id}, or it has rights that the key of the request lacks`,
  keys_max: (max: number) => `there are ${max} keys; revoke some`,
  no_scope: (scope: string) => `this key lacks the scope "${scope}"`,
  websocket_only: 'this path accepts only WebSocket handshakes',
  methods_of: (path: string, methods: string) => `${path} supports ${methods}`,
  no_route: (method: string, path: string) => `${method} ${path} does not exist`,
  no_uuid: 'an id in the path is not a UUID',
  body_mismatch: 'the body does not match its schema',
  body_cut_off: 'the connection was closed before the whole body had arrived',
  invalid_parameters: (target: string, first: string) => `invalid ${target} parameters: ${first}`,
  unknown_parameter: (name: string, nearest: string, names: string) =>
    `there is no query parameter "${name}"; did you mean "${nearest}"? This request has: ${names}`,
  database_silent: 'the database does not answer',
  database_busy: 'the database is busy: other work takes longer than it should; retry later',
  database_slow: 'the database is busy: messages have waited for longer than 10 s to be stored',
  key_used: 'this Idempotency-Key was used for another request',
  first_in_progress: 'the first request with this Idempotency-Key is in progress or was interrupted',
  too_many_sockets: 'too many sockets are open; close some',
  socket_kit: 'kit not found',
  socket_path: 'no socket at this path',
  reads_too_much: (remedy: string) => `the request reads too many messages; ${remedy}`,
  shorter_or_tens: 'ask for a shorter time, or for buckets of whole tens of minutes',
  shorter_time: 'ask for a shorter time',
  foreign_cursor: 'the cursor was not issued by this service',
  cursor_of_other: 'the cursor belongs to another query; only the cursor may change between pages',
  no_time: (text: string) =>
    `"${text}" is no time; write ISO 8601 with seconds and a zone, such as 2026-11-21T10:00:00Z or 2026-11-21T11:00:00+01:00 (in an address: %2B for +), or the milliseconds since 1970 (13 digits)`,
  no_zoned_time: (text: string) =>
    `"${text.slice(0, 40)}" is no time; write ISO 8601 with seconds and a zone, such as 2026-11-21T10:00:00Z or 2026-11-21T11:00:00+01:00`,
  empty_list: 'name at least one, or leave the parameter out',
  no_id: (text: string) => `"${text}" is no UUID`,
  layer_too_large: (count: number, most: number) =>
    `${count} assets have a position, and one response at most ${most}; name "kits", "tags" or "types"`,
  no_time_zone:
    '"tz" is "kit", and the kit has no time zone; set "time_zone" with Change kit, or name the zone here',
  turned_span: '"from" is later than "to"',
  only_by_arrival: '"arrived_from" is for "order=arrival" only; "from" is the time of observation',
  export_too_long: (days: number, max: number) =>
    `"from" to "to" are ${days} days, and an export has at most ${max}; ask for one stretch of ${max} days after the other`,
  erased_ahead: (before: string, now: string) =>
    `"before" is ${before}, and here it is ${now}: an erasure concerns what was observed until now; what is yet to come cannot be erased`,
  log_erased: 'history erased',
  log_erasure_mended:
    'erasure had a bound ahead of its own time and withheld messages; cut it to when it was asked for',
  history_busy: (max: number) =>
    `at most ${max} history requests at once for each key, and too many wait; retry later`,
  history_crowded: 'history requests of other clients take too long; retry later',
  exports_busy: (max: number) => `at most ${max} exports at once for all clients; retry later`,
  series_names: (names: number, series: number) =>
    `"names" has ${names} names for ${series} series; give each series one name, other than "time"`,
  too_many_kits: (found: number, max: number) => `${found} kits; name at most ${max} in "kits"`,
  log_answer_cut: 'answer of the history cut off; its client has a part',
  key_ended: 'the key was revoked or has expired, or the session has ended',
  client_left: 'the client closed the connection',
  client_stalled: (seconds: number) => `the client read nothing for ${seconds} s`,
  no_map: 'no map is configured; name a PMTiles file as "map"',
  map_bytes: (bytes: number) => `the file has ${bytes} bytes`,
  map_unreadable: (reason: string) => `the map file cannot be read: ${reason}`,
  map_no_archive: 'the file is not a PMTiles archive',
  map_version: (found: number, version: number) =>
    `the file is a PMTiles archive of version ${found}; convert it to version ${version}`,
  map_bounds: 'the bounds in the header of the archive are not on the Earth',
  map_metadata_large: (bytes: number, max: number) =>
    `the metadata of the archive has ${bytes} bytes; at most ${max}`,
  map_metadata_damaged: (reason: string) => `the metadata of the archive is damaged (${reason})`,
  map_cut: 'the archive is cut off; copy it again',
  map_replaced: 'the file was replaced while it was read',
  map_no_file: 'it is not a file',
  map_shorter: 'the file became shorter while it was read',
  reason_erased: 'erased with the history',
  other_id: (field: string, id: string) => `data.${field}: expected the id in the topic, received "${id}"`,
  not_separate: 'not allowed as a separate message',
  no_object: 'data: expected an object',
  feed_name: (max: number) => `the name of a feed has 1 to ${max} characters`,
  too_many_feeds: (max: number) => `a kit has at most ${max} feeds`,
  too_many_assets: (max: number) => `a kit has at most ${max} assets`,
  feed_too_large: (chars: number, max: number) => `data has ${chars} characters; at most ${max}`,
  message_too_large: (bytes: number, max: number) => `${bytes} bytes; at most ${max}`,
  no_message_of_batch: 'not allowed in a batch',
  database_behind: 'too many messages wait for the database',
  share_silent: (share: string) =>
    `the broker accepts the subscription to $share/${share} and delivers nothing on it while kits publish; this replica subscribes without it until the next connect: use a broker with shared subscriptions of MQTT 5, allow user and client to read $share/${share}/k1/+/up/#, take ingest.amqp with RabbitMQ, or run one service without share`,
  nothing_arrives:
    'the broker delivers no messages, not even retained ones, although kits were last reported as online; check that the user of the service may read k1/+/up/#',
  connection_closed: 'the broker closed the connection',
  consumer_cancelled: (queue: string) => `the broker ended the consumer of queue ${queue}`,
  queue_differs: (reason: string, queue: string) =>
    `${reason}; queue ${queue} exists with other properties: delete it when it is empty, or name another one as ingest.amqp.queue`,
  amqp_refused: (
    reason: string,
    {
      username,
      vhost,
      queue,
      exchange,
    }: Readonly<Record<'username' | 'vhost' | 'queue' | 'exchange', string>>,
  ) =>
    `${reason}; check the password, and give user ${username} in virtual host ${vhost} the rights to configure, write and read queue ${queue} and to write and read exchange ${exchange}`,
  log_blocked: 'broker blocked publishing (memory or disk alarm); waiting',
  log_unblocked: 'broker accepts messages again',
  database_standby: 'the server is a standby; none of the hosts in "database" accepts writes yet',
  asynchronous_standbys: (standbys: number) =>
    `the database has ${standbys === 1 ? '1 standby' : `${standbys} standbys`} and synchronous_standby_names is empty: a failover would lose messages that kits have deleted already; set synchronous_standby_names (Patroni: synchronous_mode: true)`,
  commit_without_standby: (commit: string) =>
    `synchronous_commit is ${commit}: commits do not wait for a standby, and a failover would lose messages that kits have deleted already; set it to on for this user and database`,
  commit_off:
    'synchronous_commit is off: a crash of the database server would lose messages that kits have deleted already; set it to on for this user and database',
  commit_not_replicated: (reason: string) => `PostgreSQL: ${reason}; storing the messages again`,
  replication_unknown: (reason: string) =>
    `cannot determine whether the database replicates synchronously: ${reason}`,
  log_attention: 'service needs attention',
  log_attention_over: 'service no longer needs attention',
  database_closed: 'the database is closed',
  cannot_open: (file: string, reason: string) => `cannot open ${file}: ${reason}`,
  file_gone: (files: string, reason: string) =>
    `${files} was deleted or replaced while in use, and what it held cannot be saved into a new file: ${reason}`,
  file_not_rescued: 'database file was deleted or replaced; refusing work until a new one can be made',
  file_rescued: 'database file was deleted or replaced; rescued what it held into a new one',
  check_directory: 'check the directory and its permissions',
  disk_full: 'disk full, free some space',
  disk_full_or_failing: 'disk full or failing, free some space',
  disk_failing: 'disk I/O error, check the disk (journalctl -k)',
  file_read_only: 'the file or its disk is read-only, check the permissions and the disk',
  file_damaged:
    'the file is damaged or no database, move it away and start again; kits send again what they still have',
  file_not_accessible: 'the file cannot be opened, check the directory and its permissions',
  file_locked: 'the file is locked by another program, stop that program',
  postgres_login: 'check the user in "database" and database_password_file, and pg_hba.conf of the server',
  postgres_no_database: 'create the database, or name another one in "database"',
  postgres_rights:
    'let the user create and use tables: make it the owner of the database, or GRANT ALL ON SCHEMA public and on its tables',
  postgres_tables:
    'the tables are missing: check the database and the search_path of the user, and start the service again',
  postgres_disk: 'the disk of the database server is full, free some space there',
  postgres_connections:
    'the server has no free connection: raise its max_connections to 10 for each replica and what other programs need',
  postgres_encoding: (found: string) =>
    `the database has the encoding ${found} and cannot store all texts; create it with ENCODING 'UTF8' TEMPLATE template0`,
  erasure_is_read:
    'erased, but still in the write-ahead log because another program is reading the database; stop that program and erase again',
  later_version_file: (version: number) =>
    `the database was written by a later version (${version}); install that version, or configure another file`,
  later_version_database: (version: number) =>
    `the database was written by a later version (${version}); install that version, or configure another database`,
  schema_later: (version: number, mine: number) =>
    `a later version has changed the tables of the database (${version}), and this one (${mine}) may not write them any more; install that version here`,
  schema_earlier: (version: number, mine: number) =>
    `the tables of the database are those of an earlier version (${version}), as after a restore, and this one (${mine}) may not write them; its next start brings them up to date`,
  schema_changing:
    'another replica is changing the tables of the database; storing goes on when it has ended',
  tables_not_upgraded:
    'the tables of the database are those of an earlier version; start the service of this version on it first',
  older_writers: (connections: number) =>
    `services of an earlier version are connected to the database (${connections} connections), and this one writes what they do not understand; stop them, or run "kit-connector service upgrade", after which they end`,
  unfenced_writers: (connections: number) =>
    `services of an earlier version are connected to the database (${connections} connections named "kit-connector") that would not notice the change of its tables; stop them`,
  log_schema_other: 'service ends: nothing more is stored or acknowledged here',
  subscription_refused: (filter: string, reason: string, remedy: string) =>
    `the broker refused the subscription to ${filter}: ${reason}; ${remedy}`,
} as const;
