/** Sentences on the control socket that people read; tests refer to them by name. */
export const texts = {
  already_listening: (socket: string) =>
    `another kit-connector listens on ${socket}; stop it, or give this one its own runtime_dir`,
  not_running: (socket: string, reason: string) =>
    `kit-connector is not running (${socket}: ${reason}); start it, or name its socket with --socket`,
  not_allowed: (socket: string, reason: string) =>
    `cannot connect to ${socket} (${reason}); join its group or use sudo`,
  token_missing: 'send the token of metrics.token_file: "Authorization: Bearer TOKEN"',
  no_answer: (socket: string, reason: string) =>
    `the daemon at ${socket} does not answer (${reason}); see its log`,
} as const;
