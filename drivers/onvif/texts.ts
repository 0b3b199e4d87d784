/** Sentences of the driver that people read; tests refer to them by name. */
const address_chars_max = 200;

export const texts = {
  no_identity: 'it reports neither a serial number nor a MAC address; set identity in the configuration',
  /** `others`: the logins that the camera asks for, where HTTP digest is not among them. */
  no_picture: (status: number, others = '') => {
    if (status !== 401 && status !== 403) return `returns no picture (HTTP status ${status})`;
    return others === ''
      ? `refuses the login for its picture (HTTP status ${status}); check the rights of its user`
      : `asks for another login for its picture (${others}); pictures need HTTP digest, or Basic over TLS`;
  },
  profiles_refused: 'camera did not list its profiles; no stream, snapshot or movement',
  rights_remedy: 'give the user the rights of an operator or administrator at the camera',
  create_profile: 'create a media profile at the camera',
  stream_refused: 'camera reported no stream; its video is not shown',
  no_profiles: 'lists no media profile',
  complete_again: 'camera accepts requests that it had refused, or has other video sources; reading it again',
  refused_remedy: 'check its power, host and port, and that ONVIF is switched on',
  check_tls: 'check port and tls',
  check_port: 'check port and path, and that ONVIF is switched on',
  account_locked: (username: string, answer: string) =>
    `camera locked the account of "${username}"${answer}; unlock it or restart the camera, and correct the password file`,
  address_unusable: (address: string, reason: string) =>
    `reports an address that cannot be used: ${address.slice(0, address_chars_max)} (${reason})`,
  events_remedy:
    'end other clients of its events or restart the camera, or set events: off on its entry where it has none',
  no_picture_address: 'reports no snapshot address',
  serial_changed: 'camera reported another serial number than before; identified by its MAC address',
  serial_shared: 'another camera has the same serial number; identified by its MAC address',
  events_lost: 'event subscription lost; subscribing again',
  events_available: 'camera events available again',
  pull_point: 'pull point',
  webhook: 'webhook',
  events_unavailable: 'camera events unavailable; motion unknown',
  events_not_read: (
    topics: readonly { readonly camera: string; readonly topic: string; readonly count: number }[],
    others: number,
  ) =>
    `${topics.map(({ camera, topic, count }) => `${topic} of ${camera} (${count})`).join(', ')}${others > 0 ? ` and ${others} more` : ''}; where one is an alarm, add it to the options: events: [{ topic: "${topics[0]?.topic ?? ''}", feed: motion }]`,
  cameras_found: 'unconfigured cameras found; add them to the configuration',
  no_further_event: 'no further event',
  not_confirmed: (s: number) => `not confirmed by the camera for ${s} s`,
  nothing_sent: 'no request was sent',
  subscription_lost: 'event subscription lost: not renewed',
  not_renewed: (reason: string) => `the subscription was not renewed: ${reason}`,
  not_called_yet: 'subscribed by webhook; the camera has not called yet',
  no_event_service: 'the camera has no event service',
  events_off: 'events are switched off',
  cannot_listen: (reason: string) => `cannot listen on webhook.listen and webhook.port: ${reason}`,
  connection_lost: 'camera connection lost',
  other_camera_answers: 'another camera answers at its address; connecting again',
  stop_failed: 'stop of an earlier move failed; retrying',
  login_required: (answer: string) => `camera requires a login${answer}; set username and password_file`,
  login_rejected: (username: string, answer: string) =>
    `camera refused the login of "${username}"${answer}; correct user and password, or allow this user to use ONVIF at the camera`,
  clock_off: (username: string, answer: string, ahead_ms: number) =>
    `camera refused the login of "${username}"${answer}, and its clock is ${hoursOf(ahead_ms)} the gateway's; set its time, time zone and summer time, or correct user and password`,
  basic_alone:
    'camera offers HTTP Basic alone, which sends the password readable; switch on digest or WS-Security at the camera, or HTTPS there and tls in the configuration',
  request_echoed:
    'sends its request back in place of a reply, a fault of the firmware of some TP-Link cameras; update the firmware or restart the camera',
  presets_unread: (reason: string) => `cannot read the presets: ${reason}`,
  no_preset: (token: string, hint: string) => `the camera has no preset "${token}"${hint}`,
  no_movement: (reason: string) => `${reason}; no movement began`,
  movement_unknown: (reason: string) => `${reason}; whether it moves is unknown`,
  patrol: (name: string) => `Patrol ${name}`,
  switch_unknown: (reason: string) => `${reason}; whether it was switched is unknown`,
  not_switched: (reason: string) => `${reason}; nothing was switched`,
  unknown_source: (unknown: string, known: string) =>
    `sources names ${unknown}, which the camera does not list; it lists ${known}`,
  no_signal: 'the device reports no video signal',
  source_gone: 'the device does not list this video source now',
  several_sources: 'camera has several video sources; each is an asset',
  cancelled_stopped: 'cancelled; the camera was stopped',
  preset_late: 'the camera did not reach the preset in time; it still moves',
  too_little_time: 'too little time left to move and to stop',
  stop_rejected: (reason: string) =>
    `the camera may still be moving: it rejected the stop (${reason}); Stop is sent again when it answers`,
  still_moving: 'the camera accepted the stop and reports that it still moves',
  redirected: (status: number, location: string) =>
    `it redirects to "${location}" (HTTP status ${status}), which is not followed; set host, port and path to where its ONVIF service is`,
  reply_empty: 'its reply is empty',
  http_status: (status: number) => `HTTP status ${status}`,
  other_fingerprint: (seen: string) =>
    `its certificate has the fingerprint ${seen}, not the one in tls.fingerprint`,
  reply_large: (max: number) => `its reply is larger than ${max} bytes`,
  reply_encoded: (encoding: string) =>
    `its reply is encoded (${encoding}), which was not requested; switch compression off at the camera`,
  reply_not_unpacked: 'its reply is compressed and damaged',
  closed_in_reply: 'connection closed in the middle of the reply',
  not_trusted: (code: string, how: string) =>
    `its certificate is not trusted (${code}); write its SHA-256 to tls.fingerprint: ${how}`,
  xml_doctype: 'a document type is not allowed in SOAP',
  xml_ends: (element: string) => `the reply ends within ${element}`,
  xml_not_open: 'the reply closes an element that is not open',
  xml_too_deep: 'the reply is nested too deep or too large',
  xml_tag_open: 'the reply contains a tag that does not end',
  not_wanted: 'its answer was not waited for',
  connection_closed: 'camera connection closed',
  queue_full: 'too many calls in the queue of the camera',
  answer_late: (s: number) => `no complete answer within ${s} s`,
  no_envelope: 'it is not a SOAP envelope',
  reply_unread: (reason: string) => `cannot read its reply: ${reason}`,
  rights_rejected: (words: string) => `camera refused the login of the user or its rights${words}`,
  request_refused: (reason: string) => `camera refused the request (${reason})`,
} as const;

function hoursOf(ahead_ms: number): string {
  const seconds = Math.round(Math.abs(ahead_ms) / 1_000);
  const minutes = Math.round(seconds / 60);
  const hours = Math.floor(minutes / 60);
  const rest = minutes % 60 === 0 ? '' : ` ${minutes % 60} min`;
  const length =
    seconds < 120
      ? `${seconds} s`
      : hours >= 48
        ? `${Math.round(hours / 24)} days`
        : hours > 0
          ? `${hours} h${rest}`
          : `${minutes} min`;
  return `${length} ${ahead_ms > 0 ? 'ahead of' : 'behind'}`;
}
