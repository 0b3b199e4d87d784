/** Sentences on the control socket. Tests refer to them by their names here. */
export const texts = {
  notRunning: (socket: string, reason: string) =>
    `kit-connector is not running (${socket}: ${reason}); start it, or name its socket with --socket`,
  notAllowed: (socket: string, reason: string) =>
    `cannot connect to ${socket} (${reason}); join its group or use sudo`,
  noAnswer: (socket: string, reason: string) =>
    `the daemon at ${socket} does not answer (${reason}); see its log`,
} as const;
