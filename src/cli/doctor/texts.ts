/** Sentences of the doctor that people read; tests refer to them by name. */
export const texts = {
  access_rules_mosquitto: 'access rules for mosquitto and EMQX are in /usr/share/kit-connector/broker',
  mqtt5_unsupported: 'MQTT 5 is not supported; protocol: 3.1.1 saves an attempt each hour',
  certificate_name: 'the client certificate name',
  read_log_broker: 'read the log of the broker; if it supports only one version of MQTT, set broker.protocol',
  see_network_checks: 'see dns, broker tcp and broker tls',
  broker_rejected: (name_of: string, reason: string) => `the broker rejected ${name_of}: ${reason}`,
  correct_login: (password: string) =>
    `correct broker.username and the password in ${password}, or register this user at the broker`,
  subscription_timed_out: (place: string) => `the subscription to ${place} timed out`,
  subscription_accepted: (place: string) => `the broker accepted the subscription to ${place}`,
  no_read_permission: (refused: string) => `no permission to read ${refused}`,
  allow_read: (rules: string) => `allow this user to read these topics; ${rules}`,
  message_timed_out: (topic: string) => `a message to ${topic} timed out`,
  no_subscriber_expected: '; no subscriber, as expected for this channel',
  write_permission: (topic: string, note: string) => `permission to write ${topic}${note}`,
  no_write_permission: (topic: string, reason: string) => `no permission to write ${topic}: ${reason}`,
  allow_write: (topics: string, rules: string) => `allow this user to write ${topics}; ${rules}`,
  other_certificate: (name: string, id: string) => `it is for "${name}" and not for ${id}`,
  take_own_certificate: (id: string) =>
    `most brokers take the common name of a certificate for the user: use one with the name ${id}`,
  write_permission_unknown: (up_topic: string) =>
    `permission to write ${up_topic} is unknown: MQTT 3.1.1 does not report refusals`,
  check_access_rules: 'check the access rules of the broker',
  set_clock_by_ntp: 'let systemd-timesyncd or chrony set the clock (timedatectl set-ntp true)',
  clock_not_synchronised: (now: string) => `${now}Z, not synchronised from the network since boot`,
  or_trust_clock: (remedy: string) => `${remedy}, or set clock: trusted`,
  clock_against: (server: string) => `clock against ${server}`,
  no_answer: (reason: string) => `no answer (${reason})`,
  open_ntp_port: 'open UDP port 123 in the firewall, or use another server',
  inodes_free: (ffree: number, dir: string) => `${ffree} free on the disk of ${dir}`,
  delete_small_files: 'delete files; directories of many small files first',
  cannot_read: (dir: string, reason: string) => `cannot read ${dir} (${reason})`,
  check_disk: 'check the disk and its mount',
  bytes_free: (free: string, dir: string) => `${free} free on the disk of ${dir}`,
  below_minimum: (room: string, wanted: string, low: string) =>
    `${room}, less than the minimum of ${wanted} (${low})`,
  minimum_of_buffer: 'outbox.free_disk_min_mb',
  free_space_logs: 'free some space, old logs first (journalctl --vacuum-size=100M)',
  free_space_soon: 'free some space before the buffer has to drop messages',
  accepts_files: (dir: string) => `${dir} accepts files`,
  cannot_write: (dir: string, reason: string) => `cannot write to ${dir} (${reason})`,
  run_as_daemon_user: 'run the doctor as root or as the user of the daemon',
  free_space_full: 'free some space; the disk is full',
  repair_disk:
    'see dmesg, check the disk (fsck) and restart the kit; a disk often becomes read-only after a defect',
  replace_disk: 'see dmesg, and replace the disk',
  check_failed: (reason: string) => `check failed: ${reason}`,
  report_with_bundle: 'report this with a support bundle',
  check_timed_out: 'the check timed out',
  repeat_later: 'repeat it when the load of the machine is lower',
  device_of: (driver: string) => `device of ${driver}`,
  port_not_checked: (host: string, port: number) =>
    `${host} port ${port} not checked: too many other devices do not answer`,
  fix_those_first: 'fix those first',
  restart_and_read_log: 'systemctl restart kit-connector, then read its log',
  daemon_silent: 'the control socket exists, but the daemon does not answer',
  restart_hung_daemon:
    'if the systemd watchdog does not restart it within a minute, systemctl restart kit-connector; then make a support bundle',
  start_daemon: 'systemctl start kit-connector; if it stops again, see journalctl -u kit-connector -n 20',
  configuration_valid: (config_file: string, count: number, drivers: string) =>
    `${config_file} is valid, ${count} ${drivers}`,
  configuration_denied: (config_file: string) => `cannot read ${config_file} (permission denied)`,
  join_group: 'use sudo, or add this user to the group (sudo adduser USER kit-connector) and log in again',
  journal_denied: 'this user cannot read the log of the service (journalctl)',
  join_adm: 'use sudo, or add this user to the group adm (sudo adduser USER adm) and log in again',
  correct_file: 'correct the file',
  versions: (version: string, node: string, platform: string, arch: string) =>
    `kit-connector ${version}, Node ${node}, ${platform} ${arch}`,
  running_for: (version: string, time: string) => `kit-connector ${version} has been running for ${time}`,
  round_trip: (rtt_ms: number) => `, round trip ${rtt_ms} ms`,
  of_broker: (url: string, finding: string) => `${url}: ${finding}`,
  profile_fits: (name: string) => `${name}: address and login are as its documents ask for`,
  profile_rate: (name: string, messages: number) =>
    `${name}: it takes ${messages} messages a second, so live ones leave together once a second when they are more than half of that`,
  profile_tls: (name: string) => `${name} takes connections with TLS only`,
  write_profile_url: (host: string, mqtts: number, wss: number) =>
    `write mqtts://${host}:${mqtts} or wss://${host}:${wss}/mqtt in broker.url`,
  profile_port: (name: string, port: number) => `${name} does not listen on port ${port}`,
  profile_certificate: (name: string) => `${name} expects a client certificate, and none is set`,
  set_certificate: 'set broker.cert_file and broker.key_file',
  profile_password: (name: string) => `${name} expects a user name and a password, and no password is set`,
  set_password: 'set broker.username and broker.password_file',
  no_broker_configured: 'no broker is configured',
  set_up_broker: 'set broker.url (kit-connector setup asks for it)',
  not_connected: (broker: string, since: string, last_error: string) =>
    `not connected to ${broker} since ${since}: ${last_error}`,
  use_certificate_name: 'set broker.url to a name in the certificate',
  correct_login_and_restart: (password: string) =>
    `correct broker.username and the password in ${password}, or register this kit at the broker; then restart kit-connector`,
  ca_place: (stored: string) => `broker.ca_file or ${stored}`,
  register_certificate: (certificate: string) =>
    `register the certificate in ${certificate} at the broker, or replace it: the new one is used at the next attempt`,
  messages_buffered: 'messages are buffered; see dns, broker tcp and broker tls',
  broker_rejected_messages: (quarantined: number, kinds: string) =>
    `the broker rejected ${quarantined} messages permanently${kinds}`,
  retry_quarantine:
    'see kit-connector buffer quarantine list; allow these topics at the broker, then kit-connector buffer quarantine retry',
  no_subscriber: (kinds: string) => `no subscriber for ${kinds}`,
  start_cloud_services: 'start the services of the cloud, or correct their subscriptions',
  disk_full: (detail: string) => `the disk is full: ${detail}`,
  disk_write_failed: (detail: string) => `disk write failed: ${detail}`,
  free_space_until: 'free some space; until then the buffer does not grow',
  check_disk_buffering: 'check the disk and its mount (dmesg); until then messages are buffered in memory',
  free_space_buffering: 'free some space; until then messages are buffered in memory',
  unlock_buffering:
    'end the other program that has the buffer file open; until then messages are buffered in memory',
  accounting_mismatch: 'accepted and released messages do not match',
  bundle_and_report: 'make a support bundle and report this',
  up_since: (since: string) => `up since ${since}`,
  up_with_devices: (since: string, online: number, all: number) =>
    `up since ${since}, ${online} of ${all} devices online`,
  events_not_read: (topics: string) => `not read: ${topics}`,
  not_all_delivered: (up: string, assets: number) =>
    `${up}; ${assets} ${assets === 1 ? 'asset does' : 'assets do'} not deliver everything`,
  see_assets: 'see its assets below',
  check_offer: 'check its settings and its firmware',
  no_device_online: 'none of its devices is online',
  see_devices: 'see its devices below',
  device_rejected: (tried: string, at: string, answer: string) => `rejected${at} by ${tried}: ${answer}`,
  device_not_served: (tried: string, at: string, answer: string) =>
    `not served, tried ${tried}${at}: ${answer}`,
  tried_at: (at: string) => ` at ${at}`,
  next_attempt: (at: string) => `next attempt at ${at}`,
  correct_device: 'correct its options or password',
  reload_tries_now: 'systemctl reload kit-connector tries at once',
  check_address: 'check its power, its cable and its address',
  offline: (reason: string) => `offline: ${reason}`,
  no_data_received: 'no data received',
  no_data_yet: 'no data from its devices yet',
  check_devices_on: 'check that they are switched on and connected',
  no_device: (since: string, why: string) => `no device connected since ${since}: ${why}`,
  check_device: 'check power, cable and address of the device',
  correct_options: 'correct its options or password, then systemctl reload kit-connector',
  does_not_stop: (why: string) => `does not stop: ${why}`,
  restart_and_report: 'restart kit-connector, and report this with a support bundle',
  last_seen: (last_seen_at: string) => `, last seen at ${last_seen_at}`,
  check_radio: 'check its power, and the connection, antenna and range of the radio',
  check_cable: 'check its power, its cable and its network',
  port_of: (what: string) => `port of ${what}`,
  port_place: (protocol: string, port: number, host: string) => `${protocol} port ${port} of ${host}`,
  nothing_listens: (place: string) => `no process listens on ${place}`,
  restart_after_change:
    'after a change of the configuration, systemctl restart kit-connector; otherwise see journalctl -u kit-connector',
  port_used: (place: string, name: string) => `${place} is used by ${name}`,
  stop_or_choose_port: 'stop that program, or choose another port',
  daemon_listens: (place: string) => `the daemon listens on ${place}`,
  port_used_unknown: (place: string) => `${place} is used by another program`,
  find_with_ss:
    'find it with "sudo ss --listening --processes --tcp --udp", and stop it or choose another port',
  name_server_silent: (host: string, servers: string) => `no name server answered for ${host} (${servers})`,
  name_server_fails: (host: string, servers: string) =>
    `the name server (${servers}) answers SERVFAIL for ${host}: it reaches no other one, or the signatures (DNSSEC) do not fit the clock`,
  check_name_server:
    'check the clock of this machine and that a WAN link is up, then its name server (resolvectl query, DNSSEC= in resolved.conf)',
  name_server_refuses: (host: string, servers: string) =>
    `the name server (${servers}) refuses to answer for ${host} (REFUSED), as that of a provider does over the link of another`,
  change_name_server:
    'use the name servers of the link that is used (resolvectl status), or some that answer over every link',
  no_name_server: (host: string, servers: string) =>
    `no name server runs where /etc/resolv.conf leads (${servers}), so ${host} is not found`,
  set_name_server:
    'start systemd-resolved, or the name server that is configured, or let DHCP write /etc/resolv.conf (ls -l /etc/resolv.conf)',
  host_not_found: (host: string, reason: string) => `${host} not found (${reason})`,
  check_name_and_link:
    'check the name in broker.url, and that a WAN link is up and provides a name server (resolvectl status)',
  proxy_connects: (proxy: string, { host, port }: { readonly host: string; readonly port: number }) =>
    `${proxy} connects to ${host} port ${port}`,
  answers_within: (place: string, took_ms: number) => `${place} answers within ${took_ms} ms`,
  check_port: 'check the port, and that the service runs; the host is reachable but the port is closed',
  check_host_name: 'check the host name, and the name server of this machine',
  check_host: 'check its power, its cable, its address and the firewall',
  uploads_fail: (files: number, reason: string) =>
    `${files} wait for the cloud, and uploads fail (${reason})`,
  check_uploads:
    'check that this machine reaches the address of the service (files.url there) by https; uploads go on by themselves',
  check_links: 'check the WAN links, and the routes of this machine (ip route)',
  check_own_rules:
    'check the routes, rules and firewall of this machine (ip route, ip rule, nft list ruleset)',
  handshake_failed: (reason: string) => `handshake failed: ${reason}`,
  check_tls_port:
    'check that the port supports TLS 1.2 or later, and broker.cert_file and key_file if the broker requires a client certificate',
  tls_trusted: (socket: string | null, host: string) => `${socket}, trusted for ${host}`,
  certificate_rejected: (why: string, code: string) => `broker certificate rejected: ${why} (${code})`,
  has_expired: 'it has expired',
  renew_certificate_and_clock:
    'install a new certificate at the broker; then check the clock of this machine',
  authority_expired: (name: string, day: string) =>
    `the certificate of its authority ${name} expired on ${day}`,
  renew_authority: (ca: string) =>
    `install the new one of the authority: at the broker, which sends it along, or in ${ca}; then check the clock of this machine`,
  not_yet_valid: 'it is not valid yet by the clock of this machine',
  check_clock: 'check the clock of this machine',
  other_name: (names: string, host: string) => `it is for ${names}, not for ${host}`,
  ca_not_trusted: (issuer: string) => `its CA${issuer && ` ${issuer}`} is not trusted by this machine`,
  set_ca: (ca: string) =>
    `set ${ca} to the CA certificate of the broker, or have the broker send its whole chain (fullchain.pem) where its CA is a public one, unless a filter of this network signs in its place, which must let the broker pass`,
  valid_until: (valid_to: string) => `valid until ${valid_to}`,
  certificate_unreadable: (reason: string) => `not readable: ${reason}`,
  write_as_pem: 'write it as PEM, beginning with -----BEGIN',
  no_expiry: 'has no expiry date',
  ask_broker_operator: 'ask the operator of the broker',
  expired_on: (day: string) => `expired on ${day}`,
  renew_certificate: 'install a new certificate at the broker',
  expires_on: (day: string) => `expires on ${day}`,
  renew_certificate_before: 'install a new certificate at the broker before then',
  valid_until_day: (day: string) => `valid until ${day}`,
  world_writable: (file: string) => `every user of this machine can change ${file}`,
  run_chmod_write: (file: string) => `run "chmod o-w ${file}"`,
  secret_world_readable: (file: string) => `${file} contains a secret and every user can read it`,
  run_chmod: (file: string) => `run "chmod o= ${file}"`,
  is_protected: (file: string) => `${file} is protected`,
  secret_empty: (path: string) => `${path} is empty`,
  write_secret: 'write the secret into it, then restart kit-connector',
  world_accessible: (path: string) => `every user of this machine can access ${path}`,
  run_chmod_all: (path: string) => `run "chmod o= ${path}"`,
  secret_unreadable: (path: string, reason: string) => `cannot read ${path} (${reason})`,
  write_readable_secret: 'write the secret into this file, readable by the daemon only',
  icmp_allowed_group: 'allowed for the groups of this user',
  icmp_allowed_raw: 'allowed for this user by CAP_NET_RAW',
  icmp_not_allowed: (low: number, high: number) =>
    `this user may not send echo requests (net.ipv4.ping_group_range is ${low} ${high})`,
  allow_icmp:
    'run "sysctl -w net.ipv4.ping_group_range=\'0 2147483647\'", as /usr/lib/sysctl.d/50-kit-connector.conf of the package does at each boot; meanwhile links are probed by TCP',
  run_with_sudo: 'run the doctor with sudo; this user cannot read the secrets of the service',
  serial_port: (driver: string) => `serial port of ${driver}`,
  ports_connected: (others: string) => `; connected ports are ${others}`,
  port_not_found: (path: string, seen: string) => `${path} not found${seen}`,
  connect_radio: 'connect the radio, try another cable, or correct the path',
  port_denied: (path: string, refusal: string) => `cannot open ${path} (${refusal})`,
  join_dialout:
    'add the user of the daemon to the group of the port (usually: adduser kit-connector dialout), then restart it',
  port_accessible: (path: string) => `${path} is accessible`,
  serial_port_used: (path: string, name: string) => `${path} is used by ${name}`,
  exclude_port: 'stop that program, or exclude the port from it (ModemManager: ID_MM_DEVICE_IGNORE)',
  hidden_by_sandbox: (path: string) =>
    `the service cannot access ${path}: its sandbox hides home directories and /tmp`,
  move_secret: (user: string) => `move the file to /etc/${user}/secrets, and correct the configuration`,
  folder_denied: (name: string, folder: string, path: string) =>
    `user ${name} cannot enter ${folder} (permission denied), a parent directory of ${path}`,
  move_or_open_folder: (user: string, folder: string) =>
    `move the file to /etc/${user}/secrets, or run "chmod o+x ${folder}"`,
  file_denied: (name: string, write: string, path: string) =>
    `user ${name} cannot ${write} ${path} (permission denied)`,
  set_dialout_group: (name: string, path: string) =>
    `set its group to dialout, which includes ${name} (udev rule, or "chgrp dialout ${path}" until it is reconnected)`,
  run_chgrp: (name: string, path: string) => `run "chgrp ${name} ${path}; chmod 640 ${path}"`,
  flash_worn_out: (dir: string) => `the flash under ${dir} has exceeded its rated life`,
  flash_used: (dir: string, step: number, spare: string) =>
    `the flash under ${dir} has used up to ${step} % of its rated life${spare}`,
  replace_flash: 'replace it; copy the configuration and let the buffer drain first',
  restarted: (times: number, last: string) =>
    `systemd restarted it ${times} ${times === 1 ? 'time' : 'times'} after it had ended by itself${last}`,
  ended_at: (how: string, at: string) => `; it ended last at ${at}: ${how}`,
  see_crash: (unit: string) =>
    `read journalctl -u ${unit} before that time and make a support bundle; systemctl reset-failed ${unit} sets the count to 0`,
  not_passed: (stored: string) =>
    `systemd does not pass ${stored} to the service: containers of LXC, LXD and Incus empty LoadCredential= of every unit`,
  name_in_file: (unit: string) =>
    `move each to /etc/${unit}/secrets (chgrp ${unit}, chmod 640), name it in broker.password_file, ca_file, cert_file or key_file, and restart`,
  errors_logged: (lines: number, time: string, last: string) =>
    `${lines} ${lines === 1 ? 'error was' : 'errors were'} logged in the last ${time}; the last one: ${last}`,
  see_journal: (unit: string) => `read journalctl -u ${unit} -p warning`,
  accepted: (finding: string) => `accepted in the configuration: ${finding}`,
  not_found_now: (name: string) => `doctor.accepted names "${name}", which is not found now`,
  // Of the service for many kits.
  service_file_valid: (file: string) => `${file} is valid`,
  service_ready: (place: string) => `answers at ${place}: messages and tasks get through`,
  service_unready: (place: string, reason: string) => `answers at ${place}, and is not ready: ${reason}`,
  service_stopped: (place: string) => `does not run: nothing listens on ${place}`,
  service_unknown: (place: string, reason: string) => `cannot be asked at ${place} (${reason})`,
  see_below: 'see the findings about broker and database',
  start_service:
    'systemctl start kit-connector-service; if it stops again, see journalctl -u kit-connector-service -n 20',
  queue_open: (queue: string, user: string, waiting: number | undefined) =>
    `as ${user}; queue ${queue} ${waiting === undefined ? 'is made at the first start' : `has ${waiting} messages`}`,
  queue_closed: (url: string, reason: string) => `${url}: ${reason}`,
  check_queue_rights: (user: string) =>
    `check ingest.amqp: name and password of ${user}, its virtual host, and its permissions (rabbitmqctl list_user_permissions ${user})`,
  minimum_of_database: 'for the database',
  free_space_database: 'free some space, or shorten the history (history in the configuration)',
  check_database: (name: string) =>
    `check that ${name} runs, and its address, user and password in the configuration`,
  no_tables: (where: string) => `${where} has no tables yet`,
  tables_of: (where: string, version: number) => `${where}, tables of version ${version}`,
  is_standby: 'the server is a standby, which takes no writes',
  name_primary: 'name all servers in database, separated by commas: the one that takes writes is used',
  tables_closed: (tables: string) => `no permission to read and write ${tables}`,
  grant_tables: 'make the user of the service their owner (ALTER TABLE ... OWNER TO)',
  may_not_create: 'no permission to make tables in this database',
  grant_create: 'make the user of the service the owner of the database (ALTER DATABASE ... OWNER TO)',
  connections_left: (left: number, max: number) => `${left} of ${max} connections are free`,
  raise_connections: 'raise max_connections of PostgreSQL, or end other programs; each replica takes up to 9',
  replicas_connected: (replicas: number) =>
    `${replicas} ${replicas === 1 ? 'service is' : 'services are'} connected to the database`,
  no_kit_online: (known: number) => `none of ${known} kits is online`,
  look_at_kits: 'check the broker; on a kit, kit-connector doctor names what is missing',
  kits_online: (online: number, known: number) => `${online} of ${known} online`,
  no_valid_key: 'no valid API key exists; clients cannot authenticate',
  add_key: 'make one with kit-connector service key add',
  keys_expired: (labels: string) => `expired: ${labels}`,
  keys_expire: (labels: string) => `expires within two weeks: ${labels}`,
  renew_key: 'make new keys (kit-connector service key add), and revoke the old ones (key revoke)',
  keys_valid: (keys: number) => `${keys} valid`,
  webhook_disabled: (reason: string) => `disabled: ${reason}`,
  enable_webhook: 'correct the receiver, then enable the webhook in the console or by PATCH /api/webhooks/ID',
  webhook_dead: (dead: number, fault: string) =>
    `${dead} ${dead === 1 ? 'message was' : 'messages were'} given up${fault === '' ? '' : `: ${fault}`}`,
  retry_webhook: 'correct the receiver, then deliver them again or purge them (/api/webhooks/ID/dead)',
  plan_flash_replacement: 'plan its replacement; lower feeds.rates_hz and check what else writes to it',
} as const;
