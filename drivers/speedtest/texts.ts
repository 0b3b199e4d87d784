/** Sentences of the speedtest driver that people read; tests refer to them by name. */
export const texts = {
  started: 'speed test started',
  completed: 'speed test completed',
  not_saved: 'speed test result not saved; a restart loses it',
  unreadable: 'stored speed test result unreadable; discarded',
  already_running: 'a speed test is running already; wait until it is over',
  link_metered: (link: string) =>
    `data cost money on ${link}; nothing was sent. Set allow_metered to test it anyway`,
  server_unknown: (name: string | undefined, known: string) =>
    `no server is called ${JSON.stringify(name)}; configured are ${known}`,
  ca_unreadable: (reason: string) => `ca_file: ${reason}`,
  no_default_route: 'there is no default route; name a link in the payload',
  link_unknown: (link: string) => `there is no link ${JSON.stringify(link)} on this kit`,
  stopped: 'the speed test was stopped',
  stopped_unrecorded: 'the speed test was stopped; nothing was recorded',
  stalled: (seconds: number) => `no data moved for ${seconds} s`,
  failed: (direction: string, link: string, reason: string) => `${direction} by ${link}: ${reason}`,
  too_little: (bytes: number, seconds: number, host: string) =>
    `only ${bytes} bytes moved within ${seconds} s, too little to measure; give ${host} a larger file, or the test more time`,
  http_status: (host: string, status: number, where: string) =>
    `${host} answers with HTTP status ${status}${where}`,
  use_redirect: '; configure the address that it leads to',
  server_closed: 'the server closed the connection without an answer',
  name_server_silent: 'no answer of the name server',
  connect_failed: (host: string, port: number, link: string, reason: string) =>
    `${host} port ${port} by ${link}: ${reason}`,
  closed_during_tls: (host: string) => `${host}: closed during TLS`,
  tls_timeout: (host: string) => `${host}: TLS took too long`,
} as const;
