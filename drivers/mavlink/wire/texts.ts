/** Sentences about signing that people read; tests refer to them by name. */
export const texts = {
  clock_write_failed: 'cannot store the signing clock; vehicles may ignore this kit after a restart',
  clock_damaged: 'signing clock file is damaged; starting from the system time',
} as const;
