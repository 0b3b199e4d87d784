/** Sentences about flight logs that people read; tests refer to them by name. */
export const texts = {
  no_answer: (vehicle: string) => `${vehicle} does not answer requests for its logs`,
  no_logs: (vehicle: string) => `${vehicle} has no logs`,
  no_such_log: (vehicle: string, id: number) =>
    `${vehicle} has no log ${id} that is not empty; list shows those it has`,
  armed: 'vehicle is armed; logs are read on the ground',
  transferring: (id: number, pct: number) => `log ${id} is being transferred (${pct} %)`,
  begun: 'flight log transfer started',
  done: 'flight log transferred',
  gone: 'flight log is no longer there; transfer ended',
  failed: 'flight log not transferred',
  differs: 'what was transferred differs from the file of the vehicle',
} as const;
