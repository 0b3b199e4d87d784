/** What is wrong with a configuration, and its remedy; tests refer to the sentences by name. Those for faults of the schema are made in faults.ts. */
const pair_remedy = 'install the two that were issued together';

export const texts = {
  // The file as YAML
  file_too_large: 'is larger than 1 MB, which no configuration is; name the right file',
  file_empty: 'is empty; at least kit_id and a driver are needed',
  no_keys: 'holds no keys; write "kit_id: ..." and so on, one key a line',
  key_no_word: 'a key is a list or a mapping; write a plain word',
  aliases: (reason: string) => `${reason}; write the values out instead of using aliases`,
  not_yaml: (reason: string) => `is not YAML (${reason}); check quotes, colons and indentation`,
  tab_indents: 'a tab indents this line; use spaces',
  duplicate_key: 'this key is given twice; remove one of them',
  second_document: 'a second document begins here; remove the line "---"',
  bad_indent: 'this line is indented differently from its neighbours; align it with them',
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
    `is left out, and ${file} cannot be read (${reason}); run this as a member of the group kit-connector, or write the id here`,
  no_id_yet: 'the kit has no id yet; start kit-connector, whose first start makes it',
  copied: (state_dir: string) =>
    `${state_dir} was written on another machine, so two kits may share one kit_id; in a copy, remove kit-id and kit-id.machine there and kit_id from the configuration, after a repair or reinstallation kit-id.machine alone, then restart kit-connector`,

  // The broker
  no_broker: (file: string) =>
    `no broker is configured, messages wait in the buffer: write its address as broker.url in ${file}, then restart kit-connector`,
  password_without_name: 'is empty, and a password needs one; write the name, or remove the password',
  no_login:
    'is empty, which only a client certificate makes up for; write the name, or name broker.cert_file',
  no_address: (url: string) =>
    `is "${url}", which is not an address; write it like mqtts://broker.example.com:8883`,
  credentials_in_url:
    'holds credentials; move the name to broker.username and the password to a file named by broker.password_file',
  unknown_scheme: (protocol: string) =>
    `begins with ${protocol}//, which is not supported; write mqtts:// (or mqtt:// without encryption)`,
  no_host: 'has no host; write it like mqtts://broker.example.com:8883',
  text_after_port: 'has text after the port; write only mqtts://host:port',
  half_pair: (other_key: string) => `is half of a pair; name the other file as broker.${other_key}`,
  no_effect_without_tls: 'has no effect on an mqtt:// address; write mqtts:// in broker.url',
  password_in_clear: (where: string, remedy: string) =>
    `the password crosses the network unencrypted to ${where}; ${remedy}`,
  write_mqtts: 'write mqtts:// in broker.url',

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
    `${what} is valid from ${day} only; check the clock of this machine`,
  expires: (what: string, day: string) => `${what} expires on ${day}; install a new one before then`,
  tls_refused: (file: string, reason: string) =>
    `${file} and its key are not taken (${reason}); install a certificate with a stronger key`,
  no_client_authority:
    'needs the authority of the clients; name its file as client_ca_file, or remove the key',

  // The service
  video_without_tls: (origins: readonly string[]) =>
    `browsers play no video from ${origins.join(', ')} on a page that came over TLS; give that server TLS too`,
  no_archive: 'is not a PMTiles archive of version 3',
  cannot_be_read: (reason: string) => `cannot be read (${reason})`,
  map_unusable: (file: string, reason: string) =>
    `map: ${file} ${reason}; the console shows the outline of the world only until it is replaced`,
  two_sources: 'takes the place of "broker"; remove one of the two',
  share_with_queue: 'is for MQTT; the replicas of a queue divide its messages without it: remove it',
  no_source:
    'names no source of messages; write the address of the MQTT broker as broker.url, or the section ingest',
  amqp_no_effect_without_tls: 'has no effect on amqp:// addresses; write amqps:// in ingest.amqp.urls',
  write_amqps: 'write amqps:// in ingest.amqp.urls',
  share_without_postgres:
    'is for replicas, which share a PostgreSQL; name one in "database", or remove "share"',
  replicated_sqlite: 'is for PostgreSQL; remove it, or name a PostgreSQL in "database"',
  no_database_address:
    'must be like postgres://user@host:5432/name; a password stands in a file named by database_password_file',
} as const;
