/** What is wrong with a configuration, and its remedy; tests refer to the sentences by name. Those for faults of the schema are made in faults.ts. */
const pair_remedy = 'install the two that were issued together';

export const texts = {
  turn_secret_short: (chars_min: number) =>
    `the secret has fewer than ${chars_min} characters; make one with "openssl rand -hex 32", and give coturn the same as static-auth-secret`,
  // The file as YAML
  utf16: 'is UTF-16 text or no text; name the right file, or save it as UTF-8',
  not_utf8: 'is not UTF-8 text here; save the file as UTF-8',
  control_character: (code: number) =>
    `holds a control character here (U+${code.toString(16).toUpperCase().padStart(4, '0')}); remove it`,
  further_faults: (count: number) =>
    `${count} further ${count === 1 ? 'fault' : 'faults'}; correct those above first`,
  file_empty: 'is empty; at least kit_id and a driver are needed',
  no_keys: 'contains no keys; write one "key: value" on each line, such as "kit_id: ..."',
  key_no_word: 'a key must be a plain word, not a list or a mapping',
  aliases: (reason: string) => `${reason}; write the values out instead of using aliases`,
  not_yaml: (reason: string) => `is not YAML (${reason}); check quotes, colons and indentation`,
  tab_indents: 'a tab indents this line; use spaces',
  duplicate_key: 'this key is given twice; remove one of them',
  second_document: 'a second document begins here; remove the line "---"',
  bad_indent: 'inconsistent indentation; align this line with the others of its section',
  not_closed: 'a quote or a bracket is not closed; close it',

  // Names that have to exist
  did_you_mean: (guess: string) => `did you mean "${guess}"?`,
  no_feed: (remedy: string) => `there is no feed of this name; ${remedy}`,
  the_feeds_are: (known: readonly string[]) => `the feeds are ${known.join(', ')}`,
  no_driver: (name: string, remedy: string) => `there is no driver "${name}"; ${remedy}`,
  the_drivers_are: (known: readonly string[]) => `the drivers are ${known.join(', ')}`,
  not_configured: (remedy: string) => `no driver of this name is configured; ${remedy}`,
  remove_line: 'remove the line',
  same_name: (name: string, earlier: number) =>
    `is named "${name}" like drivers[${earlier}]; give each its own "name"`,
  driver_not_loaded: (name: string, reason: string) =>
    `the driver "${name}" cannot be loaded (${reason}); install kit-connector again`,
  no_group: (name: string) =>
    `there is no group "${name}" on this machine; create it (groupadd --system ${name}) or remove the key`,

  // The identity of the kit
  id_unreadable: (file: string, reason: string) =>
    `is not set, and ${file} cannot be read (${reason}); run this as a member of the group kit-connector, or set the id here`,
  no_id_yet: 'the kit has no id yet; start kit-connector, which creates it at the first start',
  copied: (state_dir: string) =>
    `${state_dir} was written on another machine, so two kits may share one kit_id; if this is a copy, remove kit-id and kit-id.machine there and kit_id from the configuration, after a repair or reinstallation only kit-id.machine, then restart kit-connector`,
  state_in_memory: (key: string, dir: string, memory: string) =>
    `${key} ${dir} is in memory (${memory}), so messages, tasks and keys in it are lost when the machine restarts; set ${key} to a path on a disk`,
  state_remote: (key: string, dir: string, type: string) =>
    `${key} ${dir} is on another machine (${type}), which the files of SQLite are not made for; set ${key} to a path on a disk of this machine`,
  state_open: (key: string, dir: string, type: string) =>
    `every user of this machine can read the messages and keys in ${key} ${dir}, since ${type} keeps no permissions; set ${key} to a path on ext4 or the like, or mount it with umask=077 and uid= of the daemon`,

  // The broker
  no_broker: (file: string) =>
    `no broker is configured, messages are buffered: set broker.url in ${file}, then restart kit-connector`,
  no_broker_address:
    'is missing; add it (mqtts://host:port, or wss://host:port/path), or add broker.urls with several',
  url_and_urls: 'is set beside broker.urls; keep one of the two',
  password_without_name: 'is empty, but a password is set; set the user name, or remove the password',
  no_login: 'is empty, which requires a client certificate; set the user name, or set broker.cert_file',
  no_address: (url: string) =>
    `is "${url}", which is not an address; write it like mqtts://broker.example.com:8883`,
  credentials_in_url:
    'holds credentials; move the name to broker.username and the password to a file named by broker.password_file',
  unknown_scheme: (protocol: string) =>
    `begins with ${protocol}//, which is not supported; write mqtts:// or wss:// (mqtt:// or ws:// without encryption)`,
  no_host: 'has no host; write it like mqtts://broker.example.com:8883',
  text_after_port:
    'has text after the port; write only mqtts://host:port, or wss://host:port/path for WebSocket',
  half_pair: (other_key: string) => `has no effect alone; set broker.${other_key} too`,
  no_effect_without_tls: 'has no effect without TLS; write mqtts:// or wss:// in broker.url',
  no_effect_without_websocket: 'has no effect without WebSocket; write wss:// in broker.url',
  no_effect_without_proxy: 'has no effect without broker.proxy; set it, or remove this',
  no_proxy_address: (text: string) =>
    `is "${text}", which is not the address of a proxy; write http://host:port, https://host:port or socks5://host:port`,
  credentials_in_proxy:
    'holds credentials; move the name to broker.proxy_username and the password to a file named by broker.proxy_password_file',
  proxy_password_without_name: 'is not set, but a password is; set the user name, or remove the password',
  no_header: (file: string) => `names ${file}, which has a line that is not "Name: value"; correct it`,
  password_in_clear: (where: string, remedy: string) =>
    `the password crosses the network unencrypted to ${where}; ${remedy}`,
  write_mqtts: 'write mqtts:// in broker.url',
  write_wss: 'write wss:// in broker.url',

  // Certificates and keys
  no_certificate: (file: string) =>
    `${file} holds no PEM certificate; it must begin with -----BEGIN CERTIFICATE-----`,
  damaged_certificate: (file: string, reason: string) =>
    `${file} holds a damaged certificate (${reason}); install it again`,
  key_has_passphrase: (file: string) =>
    `the key in ${file} is protected by a passphrase; remove the passphrase`,
  no_key: (file: string) =>
    `${file} holds no PEM private key; it must begin with -----BEGIN PRIVATE KEY-----`,
  other_key: (file: string) => `${file} is not the key of the certificate; ${pair_remedy}`,
  certificate_in: (file: string) => `the certificate in ${file}`,
  expired: (what: string, day: string) => `${what} expired on ${day}; install a new one`,
  not_valid_yet: (what: string, day: string) =>
    `${what} is not valid before ${day}; check the clock of this machine`,
  expires: (what: string, day: string) => `${what} expires on ${day}; install a new one before then`,
  tls_refused: (file: string, reason: string) =>
    `TLS rejects ${file} or its key (${reason}); install a certificate with a stronger key`,
  no_client_authority: 'needs the CA of the client certificates; set client_ca_file, or remove this key',

  // The metrics
  metrics_open: (host: string) =>
    `is ${host}, which other machines reach: set metrics.token_file, or metrics.tls with client_ca_file, or listen on 127.0.0.1`,
  weak_token: (file: string) =>
    `${file} holds no token of at least 16 random characters; make one with "openssl rand -hex 32"`,

  // The service
  video_without_tls: (origins: readonly string[]) =>
    `browsers block video from ${origins.join(', ')} on a page that was loaded over TLS; enable TLS on that server too`,
  no_archive: 'is not a PMTiles archive of version 3',
  cannot_be_read: (reason: string) => `cannot be read (${reason})`,
  map_unusable: (file: string, reason: string) =>
    `map: ${file} ${reason}; the console shows the outline of the world only until it is replaced`,
  two_sources: 'replaces "broker"; remove one of the two',
  share_with_queue: 'is for MQTT; replicas that read a queue share its messages without it; remove it',
  no_source: 'has no source of messages; set broker.url to the MQTT broker, or add the section ingest',
  amqp_no_effect_without_tls: 'has no effect on amqp:// addresses; write amqps:// in ingest.amqp.urls',
  write_amqps: 'write amqps:// in ingest.amqp.urls',
  share_without_postgres:
    'is for replicas, which share a PostgreSQL; name one in "database", or remove "share"',
  replicated_sqlite: 'is for PostgreSQL; remove it, or name a PostgreSQL in "database"',
  no_database_address:
    'must be like postgres://user@host:5432/name; put the password in a file and name it in database_password_file',
} as const;
