/** Sentences about the connection to the broker that people read; those of reason codes stand in codes.ts and those of errors in faults.ts; tests refer to them by name. */
const proxy_remedies: Readonly<Record<number, string>> = {
  502: 'it does not reach the broker; check the host and port in broker.url',
  503: 'it does not reach the broker; check the host and port in broker.url',
  504: 'it does not reach the broker; check the host and port in broker.url',
};

/** Of a server or a proxy before the broker, as nginx answers while the broker behind it is away. */
const websocket_remedies: Readonly<Record<number, string>> = {
  401: ': it requires a login; check broker.websocket.headers',
  403: ': it does not let this kit in; check its access rules and broker.websocket.headers',
  502: ': it does not reach the broker behind it; read the log of both',
  503: ': it does not reach the broker behind it; read the log of both',
  504: ': it does not reach the broker behind it; read the log of both',
};

export const texts = {
  // Connecting
  no_answer: 'the broker accepted the connection and did not answer',
  no_connection: 'no connection within the time limit',
  closed_early:
    'the broker closed the connection before it answered; check the port in broker.url, and mqtts:// if it uses TLS',
  cut: {
    tls: 'the connection was ended during the TLS handshake; check that the port uses TLS, and that no firewall between ends it',
    websocket:
      'the connection was ended before a WebSocket was open; check the port in broker.url, and wss:// if it uses TLS',
  },
  no_web_server:
    'no HTTP server answers on this port, as WebSocket needs; check the port in broker.url, or write mqtt://',
  attempt_aborted: 'the attempt was aborted',
  proxy_refused: (proxy: string, place: string, reason: string, remedy: string) =>
    `the proxy ${proxy} answered ${reason} to the request for ${place}: ${remedy}`,
  proxy_remedy: (status: number) =>
    proxy_remedies[status] ??
    'it does not allow it; ask who runs it to allow connections to this host and port',
  proxy_login_missing: 'it requires a login; set broker.proxy_username and broker.proxy_password_file',
  proxy_login_refused:
    'it does not accept the login; correct broker.proxy_username and the password in broker.proxy_password_file',
  proxy_login_unknown: (schemes: string) =>
    `it requires a login by ${schemes}, and kits have Basic alone; ask who runs it to allow Basic, or the broker without a login`,
  environment_proxy:
    'https_proxy, http_proxy or all_proxy of the environment is not the address of a proxy; correct it, or set broker.proxy (none: no proxy)',
  proxy_unclear: (proxy: string, reason: string) =>
    `the proxy ${proxy} did not answer as an HTTP proxy does (${reason}); check its address and kind in broker.proxy`,
  socks_refused: (proxy: string, place: string, reason: string) =>
    `the proxy ${proxy} made no connection to ${place} (${reason}); check broker.proxy, its login, and that it allows this host and port`,
  websocket_unclear: (reason: string) =>
    `the server does not open a WebSocket as MQTT needs it (${reason}); check the path in broker.url and broker.websocket, and the proxy before the broker`,
  no_websocket: (status: number, location: string | undefined) =>
    location === undefined
      ? `the server answered HTTP status ${status} instead of opening a WebSocket${websocket_remedies[status] ?? '; check the path in broker.url'}`
      : `the server answered HTTP status ${status} and points to ${location}: a login page of this network, or another address of the broker; log in there, or correct broker.url`,

  // Sessions
  closed_by_broker: 'the broker closed the connection',
  ended_by_broker: (reason: string) => `the broker ended the connection: ${reason}`,
  session_ended: 'the connection to the broker has ended',
  request_unanswered: (what: string) => `the broker accepted the connection and did not answer the ${what}`,
  acknowledges_too_few: 'the broker left too many messages unacknowledged',
  partly_answered: 'the broker acknowledged only some filters of the subscription',
  ping_unanswered: (seconds: string) => `no answer to a ping for ${seconds} s`,

  // Packets
  packet_too_large: (type: number, bytes: number) =>
    `the broker sent a packet of type ${type} with ${bytes} bytes`,
  packet_cut: (type: number) => `the broker sent a truncated packet of type ${type}`,
  wrong_answer: (cmd: string) => `the broker answered a message with ${cmd.toUpperCase()}`,
  topic_cut: 'the broker sent a message that ends within its topic or packet id',
  topic_alias: 'the broker sent a message with a topic alias, which was not agreed on',
  not_mqtt: (first: string) =>
    `the broker sent data that is not an MQTT packet (first byte 0x${first}); check the port in broker.url`,
  speaks_otherwise: (words: string) =>
    `what answers on this port is no MQTT broker ("${words}"); check the host and port in broker.url`,
  speaks_tls: 'this port uses TLS; write mqtts:// (or wss://) in broker.url',
  speaks_http:
    'an HTTP server answers on this port; for MQTT over WebSocket write wss:// (or ws://) and its path in broker.url, for a broker that shares the port by ALPN set broker.alpn, else correct the port',
  length_unreadable: 'the broker sent a packet with an invalid length',
} as const;
