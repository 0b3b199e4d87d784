/** Sentences of the driver that people read; tests refer to them by name. */
export const texts = {
  asleep: 'the camera is asleep to save its battery',
  channel_offline: 'the recorder has no connection to this camera',
  no_channels: 'does not report its channels',
  owed_failed: 'stop of an earlier move, or of a siren or light, failed; retrying',
  no_identity: 'reports neither a UID nor a MAC address; set identity to the serial number on its label',
  no_detector: 'has no detector that it reports',
  rtsp_off: 'RTSP is switched off at the camera',
  no_longer_reported: 'the camera no longer reports it',
  served_elsewhere: 'camera ignored; another host already serves it',
  unknown_format: (cmd: string) => `answers ${cmd} in an unknown format`,
  no_tls: 'tls is disabled; password sent without encryption',
  refused_remedy:
    'switch HTTPS on in its network settings with the app (firmware updates switch it off, and battery cameras have it only behind a hub or recorder), or check port and tls',
  connector_stopped: 'the connector was stopped',
  rebooting: 'rebooting on command',
  online_channels: (channels: number, away: number) =>
    `online, ${channels} channels, ${away} of them offline`,
  login_no_session: 'answers the login without a session; check that this is such a device, and its port',
  password_long: (file: string, max: number) =>
    `password_file: the password in ${file} has more than ${max} characters, which no such device accepts; correct it`,
  queue_full: 'too many requests in the queue of the device',
  gave_way: 'the request was cancelled for a more urgent one',
  picture_status: (status: number) => `answers with HTTP status ${status}`,
  no_outcome: 'does not report whether it executed the command',
  answers_missing: (answered: number, asked: number) => `answers ${answered} of ${asked} commands`,
  loses_sessions: 'loses its sessions, or has its interface at another path',
  stopped_before: 'stopped before it was sent',
  http_status: (status: number, remedy: string) => `answers with HTTP status ${status}${remedy}`,
  needs_https: '; it requires HTTPS: set tls: true and its HTTPS port',
  no_interface: (status: number) =>
    `answers with ${status === 404 ? 'HTTP status 404' : 'a page'} at both paths of its interface (/api.cgi and /cgi-bin/api.cgi); check that it is such a device, and tls and port: some have it over HTTPS only, and small models have none`,
  account_locked:
    'the account is locked after too many failed logins; unlock it or restart the camera, correct the password file, then reload the configuration',
  login_rejected:
    'user name or password rejected; correct username and password_file, then reload the configuration',
  login_rejected_now:
    'login refused, though this user and password were accepted before: the device may be starting or blocking logins; if they were changed there, correct username and password_file, then reload the configuration',
  user_unknown:
    'the device has no such user; correct username and password_file, then reload the configuration',
  login_denied:
    'the device denies the login and does not say why, which says nothing about the password; it may deny this address for a while after failed logins of any program here, or this user: stop other programs that log in, try another administrator, or restart the device',
  login_not_ready: 'the login of the device is not ready; restart it if this lasts',
  addresses_full: 'the device serves no more addresses; close other programs and apps that are logged in',
  logins_full:
    'the device takes no more logins; close other programs and apps that are logged in, or restart the device',
  sessions_full:
    'all sessions of the device are in use; close other programs and apps that are logged in, or use a separate user for each',
  code_parameter_missing: 'the request lacks a parameter that the device requires; its firmware may differ',
  code_parameter: 'the device rejected a parameter; its firmware may differ',
  code_session_lost: 'the session with the device was lost',
  code_timeout: 'the request timed out in the device',
  code_unsupported: 'the device does not support this',
  code_not_understood: 'the device does not understand the request',
  code_memory: 'the device is out of memory; restart it if this lasts',
  code_busy: 'the device is busy; restart it if this lasts',
  code_no_picture: 'the device could not take a picture',
  picture_firmware:
    'with some firmware cameras give their recorder no pictures; try another version of the camera',
  code_settings_unread: 'the device could not read its own settings',
  code_settings_unsaved: 'the device could not store its settings',
  code_batch_large: 'the device could not forward the request; the batch was too large',
  code_camera_part: 'the device got no answer from its own camera part',
  code_session_expired: 'the session with the device has expired',
  code_not_allowed:
    'the user is not allowed to do this; use an administrator of the device in username and password_file',
  code_no_channel: 'the device has no such channel',
  code_channel_silent: 'the camera of this channel does not answer its recorder',
  code_logins_blocked: 'the device blocks logins for a while after too many of them; retried later',
  privacy_mode: 'privacy mode is on, which blocks all clients; switch it off at the camera',
  code_other: (code: number | string, words: string) => `the device answers with error ${code}${words}`,
  no_reply:
    'answers with data that is not a reply of its interface; check port and tls, or restart the device',
  restart_sent: 'restart command sent',
  restarting: 'the device is restarting',
  not_back: 'the device did not answer again',
  not_restarted: 'the device accepted the restart and did not restart',
  stopped_before_answer: 'stopped before the device answered again',
  stop_unconfirmed: (reason: string) =>
    `the camera did not confirm the stop (${reason}) and may still be moving; Stop is sent again when it answers`,
  stop_sent: (reason: string) => `${reason}; a stop was sent in case it had moved`,
  no_switch: 'the firmware of this camera offers no way to switch motion detection; nothing was changed',
  zone_empty:
    'the detection zone of the camera is empty and was not emptied by this kit; draw a zone in its app',
  grid_changed:
    'the detection grid of the camera has changed since detection was switched off; draw a zone in its app',
  switch_without_effect:
    'the camera accepted the change but did not apply it: its firmware cannot switch motion detection',
  motion_uncertain: (reason: string) => `${reason}; motion detection may have been changed`,
  zone_unsaved: (reason: string) => `cannot save the detection zone to disk (${reason}); nothing was changed`,
  off_sent: (reason: string) => `${reason}; Off was sent in case it had been switched on`,
  off_unconfirmed: (kind: string, reason: string) =>
    `the camera did not confirm that the ${kind} is off (${reason}); Off is sent again when it answers`,
  push_started: 'event push started; polling slowly as a check',
  push_unavailable: 'no event push; polling',
  push_live: 'events by push',
  push_off: (reason: string, next: string) => `events by polling (push: ${reason}${next})`,
  push_next: (time: string) => `, next try ${time}`,
  push_battery: 'off for a camera with a battery, which it would keep awake',
  push_certificate: 'off because it has no TLS and certificate_sha256 is set; push: always allows it',
  push_shared_host: 'off because another device is configured at the same host; set push_port',
  push_own_host: 'off because the host is this gateway; set push_port',
  push_port_closed: 'a model without push needs no action',
  push_closed: 'closed the event connection',
  push_silent: 'does not answer on its event port',
  push_no_frame: 'answers on its event port with data of another protocol',
  push_frame_large: (bytes: number) => `sent an event message of more than ${bytes} bytes`,
  push_flood: (count: number) => `sent more than ${count} event messages in one second`,
  push_no_nonce: 'answers on its event port without a nonce; its firmware may be too old',
  push_refused:
    'login rejected on its event port, though accepted over HTTP; correct push_port where it is set, or set push: never',
  push_login_status: (status: number) => `answers the event login with status ${status}`,
  push_subscribe_status: (status: number) => `answers the event subscription with status ${status}`,
  presets_unknown: 'answers GetPtzPreset in an unknown format',
  no_preset: (id: number | string, has: string) => `the camera has no preset ${id}; ${has}`,
} as const;
