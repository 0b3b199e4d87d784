/** Sentences of the starlink driver that people read; those of the dish stand in words.ts; tests refer to them by name. */
export const texts = {
  restarted: 'dish restarted',
  no_history: 'dish returned no history; latency and loss unknown',
  position_available: 'dish position available',
  position_refused: 'dish refused its position; retrying every 10 minutes',
  allow_position:
    'allow it in the Starlink app: Settings, Advanced, Debug data, Starlink location, "allow access on local network"',
  see_reason: 'see the reason',
  dish_failed: (link: string, place: string, reason: string) => `dish of ${link} at ${place}: ${reason}`,
  // home-assistant/core#95695, home-assistant.io#26098, Tysonpower/starlinkstatus#27.
  unreached: (reason: string, host: string, link: string) =>
    `${reason}; check its power and cable, and in bypass mode the route (ip route add ${host} dev ${link}), also that of a router before it`,
  status_refused: (reason: string) => `refused the status request: ${reason}`,
  status_unknown: (reason: string) =>
    `does not know the status request (${reason}); check host and port, and that its firmware is current`,
  not_a_dish: 'replied, but is not a dish; a Starlink router replies like this on its own address',

  // Commands
  orders: {
    reboot: (link: string) =>
      `Restarts the Starlink dish of ${link}. Its link is down for two minutes or more.`,
    stow: (link: string) =>
      `Lays the Starlink dish of ${link} flat, for transport. Its link is down until it is unstowed.`,
    unstow: (link: string) => `Raises the Starlink dish of ${link}.`,
  },
  dish_absent: 'the dish cannot be reached now',
  no_uptime: 'the dish does not report its uptime, so a restart could not be seen',
  order_refused: (reason: string) => `the dish refused: ${reason}`,
  order_accepted: 'sent to the dish; waiting for its effect',
  effect_not_seen: {
    reboot: 'the dish was not seen to restart in time, outcome unknown',
    stow: 'the dish was not seen to be stowed in time, outcome unknown',
    unstow: 'the dish was not seen to leave its stowed position in time, outcome unknown',
  },

  // gRPC
  answer_timeout: (timeout_ms: number) => `does not answer within ${timeout_ms / 1_000} s`,
  refused: 'refuses the connection; check host and port, and that the dish has power',
  not_grpc_at_all: 'answers with something that is not gRPC; check host and port',
  connection_closed: 'connection was closed',
  closed_before_answer: 'connection was closed before the answer',
  connection_failed: (reason: string) => `connection failed: ${reason}`,
  answer_too_large: (bytes_max: number) => `answer is larger than ${bytes_max} bytes`,
  answer_in_pieces: (pieces_max: number) => `answer comes in more than ${pieces_max} pieces`,
  trailers_too_large: 'trailers of its answer are too large',
  not_grpc: (http_status: string, type: string) =>
    `answers HTTP ${http_status} with ${type}, which is not gRPC`,
  no_status: 'answer ended without a gRPC status',
  no_message: 'answer contains no message',
  compressed: 'answer is compressed, which was not requested',
  length_wrong: 'answer length does not match its header',
  malformed: (what: string) => `answer is not a valid Protocol Buffers message: it has ${what}`,
  too_many_fields: (fields_max: number) => `more than ${fields_max} fields`,
  field_0: 'a field with the number 0',
  wire_type: (type: number) => `the wire type ${type}`,
  field_cut: 'a field that is cut short',
  number_cut: 'a number that is cut short',
  number_endless: 'a number without an end',
} as const;
