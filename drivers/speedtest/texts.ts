/** Sentences of the speedtest driver that people read; tests refer to them by name. */
export const texts = {
  started: 'speed test started',
  completed: 'speed test completed',
  not_saved: 'speed test result not saved; a restart loses it',
  unreadable: 'stored speed test result unreadable; discarded',
  already_running: 'a speed test is already running; wait until it ends',
  link_metered: (link: string) => `${link} is metered; nothing was sent. Set allow_metered to test it anyway`,
  server_unknown: (name: string | undefined, known: string) =>
    `no server is named ${JSON.stringify(name)}; the configured servers are ${known}`,
  ca_unreadable: (reason: string) => `ca_file: ${reason}`,
  no_default_route: 'there is no default route; name a link in the payload',
  link_unknown: (link: string) => `there is no link ${JSON.stringify(link)} on this kit`,
  stopped: 'the speed test was stopped',
  stopped_unrecorded: 'the speed test was stopped; nothing was recorded',
  stalled: (seconds: number) => `no data transferred for ${seconds} s`,
  failed: (direction: string, link: string, reason: string) => `${direction} over ${link}: ${reason}`,
  too_little: (bytes: number, seconds: number, host: string) =>
    `only ${bytes} bytes transferred within ${seconds} s, too little to measure; give ${host} a larger file, or the test more time`,
  too_little_taken: (bytes: number, seconds: number, host: string) =>
    `only ${bytes} bytes transferred within ${seconds} s, too little to measure; check that ${host} takes uploads, or give the test more time`,
  http_status: (host: string, status: number, where: string) =>
    `${host} answers with HTTP status ${status}${where}`,
  use_redirect: '; configure the target of the redirect',
  server_closed: 'the server closed the connection without an answer',
  name_server_silent: 'no answer from the name server',
  connect_failed: (host: string, port: number, link: string, reason: string) =>
    `${host} port ${port} over ${link}: ${reason}`,
  closed_during_tls: (host: string) => `${host}: connection closed during the TLS handshake`,
  tls_timeout: (host: string) => `${host}: TLS handshake timed out`,
} as const;
