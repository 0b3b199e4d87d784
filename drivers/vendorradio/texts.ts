/** Sentences of the driver that people read; tests refer to them by name. */
export const texts = {
  peer_lost: (s: number) => `not received for ${s} s`,
  peers_max: 'peer limit reached; further peers appear in the mesh feed only',
  its_radio: (reason: string) => `its radio ${reason}`,
  status_command: 'an invalid command',
  status_argument: 'an invalid argument',
  status_method: 'an unknown method',
  status_timeout: 'a timeout in the radio',
  status_unknown: 'an unknown error in the radio',
  status_connection: 'a lost connection within the radio',
  status_memory: 'no memory left in the radio',
  status_parse: 'a parse error in the radio',
  status_system: 'a system error in the radio',
  answers_missing: (answered: number, asked: number) =>
    `answers ${answered} of ${asked} calls; its firmware may not support batches`,
  session_taken: 'a session that another client ended',
  contested:
    'sessions of this radio end early, as when another client logs in with the same user; give each kit a separate user',
  not_json: 'does not offer ubus at this address: its answer is not JSON; check path',
  no_ubus: (what: string, other: string) => `${what} at the path of ubus; ${other}`,
  answer_page: 'answers with a page, which is not JSON,',
  no_json_rpc: 'an answer that is not JSON-RPC',
  no_status: 'an answer without a status',
  web_server_timeout: 'a timeout in its web server',
  error_code: (code: number, message: string) => `error ${code} ${message}`,
  no_right: 'access denied: no right in the ACL of the login, or no such method',
  not_granted: 'no right in the ACL of the login',
  no_object: 'no such object; its plugin is not installed',
  no_permission: (username: string) =>
    `does not permit user ${username} to call "iwinfo info"; install the ACL of the README on it`,
  no_wifi: (known: string) => `reports no Wi-Fi interface${known}; set device`,
  no_such_wifi: (device: string, known: string) => `has no Wi-Fi interface ${device}${known}; correct device`,
  no_interfaces: 'reports no Wi-Fi interface; set device',
  no_mac: (device: string, path: string) =>
    `does not report the MAC address of ${device}; grant "file read ${path}", or set identity`,
  gap_remedy: 'install the ACL of the README, with these rights for its user',
  call_restored: 'radio call restored',
  not_identified: 'is not identified yet',
  without_info: 'radio reports no channel and power',
  without_peers: 'radio reports no peers',
  without_survey: 'radio reports no channel utilization',
  without_uptime: 'radio reports no uptime and memory',
  without_load: 'radio reports no processor load',
  without_link_log: 'radio reports no link state; switch on "Enable Link Status Log" there',
  without_sensors: 'radio reports no temperature and voltage',
  without_position: 'radio reports no position',
  without_wifi_state: 'does not report the state of its Wi-Fi interface',
  stopped_before: 'stopped before it was sent',
  login_refused: (username: string) =>
    `refuses user ${username} or its password; correct username or password_file`,
  login_answer: (answer: string) => `answers the login with ${answer}`,
  login_no_session: 'answers the login without a session',
  login_no_rights: (username: string) =>
    `accepts the password, but user ${username} has no rights; install the ACL of the README in /usr/share/rpcd/acl.d and name it in /etc/config/rpcd`,
  rpcd_restarting: 'is restarting its rpcd, or has none',
  request_too_large: 'the request is too large for the radio',
  other_rutos:
    'it has the interface of Teltonika RutOS (/api/login), which is not served; switch SNMP on there and use kind: snmp',
  other_silvus: (path: string) =>
    `it has the interface of Silvus StreamScape (${path}), which is not served; use kind: snmp with its OIDs where it has SNMP`,
  other_airos:
    'it is a Ubiquiti airOS device, whose own interface is not served; switch SNMP on there and use kind: snmp with preset: airos and version: 1',
  other_routeros:
    'it is a MikroTik RouterOS device, whose own interface is not served; switch SNMP on there and use kind: snmp',
  other_luci: 'it runs OpenWrt; install uhttpd-mod-ubus there, or correct path',
  other_page: (title: string) =>
    `its start page is "${title}"; where it runs OpenWrt install uhttpd-mod-ubus there or correct path, else use kind: snmp`,
  other_unknown:
    'where it runs OpenWrt install uhttpd-mod-ubus there or correct path, else use kind: snmp; check port and tls',
  http_status: (status: number) => `answers with HTTP status ${status}`,
  needs_https: 'it may require HTTPS: set tls: true and its port',
  queue_full: 'too many requests in the queue of the radio',
  connector_stopped: 'the connector was stopped',
  stopped_before_answer: 'stopped before the radio answered',
  the_radio: (reason: string) => `the radio ${reason}`,
  not_served: 'is no longer served',
  no_tls: 'tls is disabled; password sent without encryption',
  refused_remedy: 'check that its web server runs, and check port and tls',
  connector_stopping: 'the connector is stopping',
  snmp_silent_community: (version: '1' | '2c') =>
    `does not answer over SNMP; check its power, that its community is that of community_file, and that it accepts version ${version}: configure the version that it has, ${version === '1' ? '2c or version 3' : '1 (airMAX and airFiber have no other) or version 3'}`,
  snmp_silent: 'does not answer over SNMP; check its power and address',
  snmp_silent_encrypted:
    'answers the discovery of SNMP version 3, but no encrypted request; correct priv_password_file or priv_protocol, or check its power',
  snmp_user_refused: (reason: string, remedy: string) => `refuses the SNMP user (${reason}); ${remedy}`,
  snmp_user_unknown:
    'correct username, or create the user on it again: a reset, and with many agents a new engine ID, removes it',
  snmp_auth_wrong: 'correct auth_password_file or auth_protocol',
  snmp_level_wrong:
    'give auth_password_file and priv_password_file as the user has passwords there, no more and no fewer',
  snmp_priv_wrong: 'correct priv_password_file or priv_protocol',
  snmp_out_of_step: (reason: string) =>
    `answers SNMP version 3 with messages that do not fit its own engine ID, time or keys (${reason}); restart its SNMP agent, and check the passwords`,
  snmp_nothing_readable:
    'answers over SNMP, but lets this community or user read nothing with this version; allow the system and interface tables there, or set another version',
  snmp_refused_remedy: 'check that its SNMP agent runs, and check port',
  snmp_foreign: (reason: string) =>
    `answers with something that is not SNMP, or cannot be read (${reason}); check port`,
  snmp_failed: (reason: string) => `SNMP request failed (${reason})`,
  snmp_public:
    'SNMP community is "public", and sent without encryption; use version 3 where the radio has it',
  snmp_clear: 'SNMP community and figures are sent without encryption; use version 3 where the radio has it',
  snmp_no_interfaces:
    'reports no interfaces over SNMP; allow the interface tables to this community or user there, unless it is starting',
  snmp_no_interface: 'reports no interface with a MAC address over SNMP; set device',
  snmp_no_such_interface: (device: string, known: string) =>
    `has no interface ${device}; its interfaces are ${known}`,
  snmp_no_mac: (name: string) => `does not report the MAC address of ${name}; set identity`,
  no_uptime: 'the radio does not report its uptime, so its restart could not be verified',
  rebooting: 'rebooting on command',
  restart_sent: 'restart command sent',
  restart_cancelled: 'cancelled; the restart command was sent',
  not_restarted: (s: number) => `the radio accepted the command, but no restart was observed within ${s} s`,
  command_rejected: (reason: string) => `the radio rejected the command: ${reason}`,
  silent_unchanged: 'the radio does not answer; nothing was changed',
  unconfirmed_change: 'the radio has another unconfirmed change; nothing was changed',
  change_rejected: (reason: string) => `the radio rejected the change: ${reason}`,
  restarted_before: 'the radio restarted before the change was applied',
  changing_settings: 'changing its settings on command',
  waiting_with: (setting: string) => `applied; waiting for the radio with ${setting}`,
  confirmed_late: 'the confirmation was too late',
  change_rejected_unchanged: (reason: string) =>
    `the radio rejected the change: ${reason}; nothing was changed`,
  silent_after: 'the radio did not answer again',
  stopped_unconfirmed: 'the task was stopped before the change was confirmed',
  answered_without: (setting: string) => `the radio answered without ${setting}`,
  no_peer_after: 'no peer after change',
  rolled_back: (why: string, channel: number | string, txpower: number | string) =>
    `${why}, rolled back to channel ${channel} at ${txpower} dBm`,
  rollback_unseen: (why: string) =>
    `${why}; the radio should have rolled back, but has not answered with its old setting yet`,
  settings_unreadable: (reason: string) => `cannot read the settings of the radio: ${reason}`,
  settings_unknown: 'the settings of the radio have an unknown format',
  several_sections: (sections: string, device: string) =>
    `the radio has several wifi-device sections (${sections}); name that of ${device} with uci_radio`,
  no_section: (section: string) => `the radio has no wifi-device section ${section}; correct uci_radio`,
  scan_rejected: (reason: string) => `the radio rejected the scan: ${reason}`,
  changing_mesh: 'changing the channel of the mesh on command',
  mesh_not_rolled_back: (why: string) =>
    `${why}; the command was sent and is not rolled back, check the frequency of the radios`,
  no_led: (name: string) => `the radio has no LED ${name}; correct identify_led`,
  led_still:
    'the radio accepted the command, but its LED does not blink; its kernel may lack the timer trigger',
  led_rejected: (reason: string) => `the radio rejected the LED setting: ${reason}`,
} as const;
