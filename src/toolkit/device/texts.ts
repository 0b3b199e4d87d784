/** Sentences of the toolkit of drivers that people read; tests refer to them by name. */
export const texts = {
  // Certificates
  certificate_pinned: 'certificate pinned at first contact; rejecting any other',
  certificate_changed: (fingerprint: string, address: string) =>
    `presents another certificate than before (now ${fingerprint}); the password was not sent. If the device at ${address} was replaced, reset or updated, set certificate_sha256 to this fingerprint`,
  no_certificate: 'presents no certificate',

  // Requests; the name of the device stands before them
  stopping: 'the connector is stopping',
  answer_timeout: (seconds: number) => `does not answer within ${seconds} s`,
  connection_closed: 'closed the connection',
  reply_too_large: (bytes_max: number) => `its reply is larger than ${bytes_max} bytes`,
  connection_refused: (remedy: string) => `refuses the connection; ${remedy}`,
  request_failed: (reason: string) => `request failed (${reason})`,
  no_route: 'has no route to it; check its power and cable',
  network_unreachable: 'is in a network that this gateway cannot reach',
  connect_timeout: 'timed out; check its power and cable',
  host_unknown: 'has an unknown host name; check host',
  host_unresolved: 'has a host name that cannot be resolved now',
  name_leads_out: (name: string, address: string) =>
    `its name ${name} now leads to ${address} in the internet and led into a private network before; the password was not sent. Check the name server of the gateway, or set host to its address`,
  legacy_tls_only:
    'supports only TLS 1.0 or 1.1, which is insecure; update its firmware, or allow it with the option for legacy TLS',
  legacy_tls: (name: string) =>
    `the login of ${name} is sent over TLS 1.0 or 1.1, which the configuration allows; update its firmware or replace it`,
  not_http: 'answers with data that is not HTTP; check port',
  tls_failed: (reason: string) => `the TLS handshake failed (${reason})`,
  not_tls: 'does not use TLS on this port; check port and tls',

  // Pictures
  clip_command:
    'Takes a piece of the recording of the media server and sends it to the cloud as a file. Without `at` it ends now.',
  snapshot_command:
    'Takes a picture; completed once the kit has it, with the path where its service serves it.',
  no_type: 'data without a type',
  picture_not_jpeg: (type: string) => `answers with ${type} instead of a JPEG picture`,
  picture_too_large: (bytes_max: number) => `its picture is larger than ${bytes_max} bytes`,

  // Sessions
  device_changed: 'its configuration has changed',
  ended_early: 'ended before it was stopped',
  is_back: (kind: string) => `${kind} is back`,
  is_rejected: (kind: string) => `${kind} cannot be served; retrying rarely`,
  is_still_unavailable: (kind: string) => `${kind} is still unavailable`,
  is_unavailable: (kind: string) => `${kind} is unavailable`,
  state_not_saved: 'device state not saved; it is lost at the next start',
} as const;
