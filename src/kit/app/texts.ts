/** Sentences of the application that people read; tests refer to them by name. */
export const texts = {
  service_failed: 'service start failed; retrying',
  service_started: 'service started',
  history_damaged: 'history could not be opened; starting a new one, the old file is kept',
  partner_failed: 'partner asset not published; the next change or sync repeats it',
  saving_power: 'battery low; saving power as configured',
  power_back: 'battery charging or charged; power saving ended',
  metered_link: 'the link in use is metered (uplink.metered)',
  rates_reduced: 'rates are reduced',
  no_speed_tests: 'speed tests are off',
  events_only: 'cameras report events only',
  battery_low: (pct: number | null, savings: string) =>
    `the battery is low${pct === null ? '' : ` (${pct} %)`}: ${savings}; charge it`,
  no_media: 'this kit has no media server that could show it (media)',
  command_saved: (name: string) =>
    `${name} is off while the battery of the kit is low (low_battery); charge it`,

  // Why a kit is degraded, for status, console and cloud; README.md explains each
  disk_full: (detail: string) => `the disk is full: ${detail}; free some space`,
  disk_full_memory: (detail: string) =>
    `the disk is full: ${detail}; messages are kept in memory, free some space`,
  disk_read_only: (detail: string) =>
    `disk write failed: ${detail}; messages are kept in memory, check the disk (dmesg, fsck) and restart the kit`,
  disk_locked: (detail: string) =>
    `disk write failed: ${detail}; messages are kept in memory, end the other program`,
  disk_write_failed: (detail: string) =>
    `disk write failed: ${detail}; messages are kept in memory, check the disk and its mount`,
  file_other_kit: (cause: string, moved_to: string) =>
    `the buffer file belongs to another kit (${cause}): it was moved to ${moved_to}, and a new one was created`,
  file_too_new: (cause: string, moved_to: string) =>
    `the buffer file needs a later release (${cause}): it was moved to ${moved_to}, and a new one was created`,
  file_damaged: (cause: string, saved: number, lost: string, moved_to: string) =>
    `the buffer file was damaged (${cause}): ${saved} messages saved, ${lost} lost; it is kept as ${moved_to}`,
  file_replaced: (saved: number, lost: string, moved_to: string | null) =>
    `the buffer file was deleted or replaced while in use: ${saved} messages were rescued into a new file, ${lost} lost` +
    (moved_to === null ? '' : `; the file in its place was moved to ${moved_to}`),
  unknown_number: 'an unknown number',
  dropping: {
    limit: (lanes: string) =>
      `the buffer is at its limit: messages of ${lanes} are thinned and dropped, the least important first; restore the connection to the broker, or raise outbox.bytes_max_mb and outbox.rows_max`,
    disk: (lanes: string) =>
      `the disk has no room for more messages: those of ${lanes} are dropped, the least important first; free some space`,
    age: (lanes: string) =>
      `messages of ${lanes} older than outbox.age_max_days are dropped; restore the connection to the broker`,
    memory: (lanes: string) =>
      `the disk is slower than the messages come, or refuses them: those of ${lanes} are dropped; check the disk`,
  },
  quarantined: (messages: number) =>
    `${messages} messages are refused by the broker; see kit-connector buffer quarantine list`,
  no_subscriber: (kinds: string) =>
    `no client of the broker is subscribed to ${kinds}: these messages wait in the buffer; check the cloud's subscriptions`,
  kind_refused: (kind: string, reason: string, remedy: string) =>
    `broker refuses messages of kind ${kind} (${reason}): they wait in the buffer; ${remedy}`,
  accounting_mismatch:
    'the accounting of the buffer does not balance: report this with the output of status --json',
  not_delivered: {
    state: (assets: string, fault: string) => `incomplete state of ${assets}: ${fault}`,
    events: (assets: string, fault: string) => `no events of ${assets}: ${fault}`,
    stream: (assets: string, fault: string) => `no video of ${assets}: ${fault}`,
    still: (assets: string, fault: string) => `no pictures of ${assets}: ${fault}`,
    commands: (assets: string, fault: string) => `no commands of ${assets}: ${fault}`,
  },
  and_more: (more: number) => ` and ${more} more`,
  driver_rejected: (name: string, reason: string) =>
    `driver ${name} was rejected: ${reason}; correct its options, then reload`,
  driver_hung: (name: string, reason: string) =>
    `driver ${name} does not stop: ${reason}; restart the service`,
  no_reason: 'no reason given',
  driver_abandoned: 'it was abandoned',
  clock_not_set: 'the clock is not set yet: times are corrected once it is; check NTP',
  configuration_rejected: (faults: number) =>
    `the changed configuration was rejected (${faults} ${faults === 1 ? 'fault' : 'faults'}): the previous one stays in effect; run kit-connector check, correct it, then reload`,
  configuration_not_applied:
    'the changed configuration could not be applied; restart kit-connector, and report it if it happens again',
  service_off: (reason: string) => `the service of the kit is not running: ${reason}; retrying every 10 s`,
  metrics_off: (reason: string) => `the metrics endpoint is not running: ${reason}; retrying every 10 s`,

  // The line of systemctl status
  own_broker: 'its own broker',
  line_connected: (host: string) => `connected to ${host}`,
  line_connecting: (host: string) => `connecting to ${host}`,
  line_not_connected: (reason: string) => `not connected (${reason}), messages are kept`,
  line_dropping: (reason: string) => `not connected (${reason}), not all messages are kept`,
  kept_until_broker: 'messages are kept until the broker is back',
  not_all_kept: 'not all messages are kept until the broker is back',
  line_assets: (online: number) => `${online} ${online === 1 ? 'asset' : 'assets'} online`,
  line_waiting: (messages: number) => `${messages} messages waiting`,
  line_driver_down: (name: string, reason: string) => `driver ${name} is down: ${reason}`,
  line_device_rejected: (name: string, reason: string) => `${name} rejected the connector: ${reason}`,
  line_more_faults: (more: number) => `${more} more faults: see kit-connector status`,

  degraded_began: 'kit degraded',
  degraded_ended: 'kit no longer degraded by this',
  backlog_draining: 'backlog draining',
  backlog_drained: 'backlog drained',
  backlog_not_shrinking: 'backlog not shrinking',
  backlog_waits: 'backlog waits',
  waits_for_cloud: 'the cloud acknowledges nothing; check its service',

  key_created: 'API key created; stored in the file',
  level_configured: 'log level reset to the configured one',
  level_set: (level: string, time: string) => `log level set to ${level} for ${time}`,
} as const;
