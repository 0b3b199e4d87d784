/** Sentences about signing that people read; tests refer to them by name. */
export const texts = {
  clock_write_failed: 'cannot store the signing clock; vehicles may ignore this kit after a restart',
  clock_damaged: 'signing clock file is damaged; starting from the system time',
  clock_ahead:
    'signing clock is ahead of the time of day, and so are all signatures; correct the time of this kit or of the system',
  clock_ahead_days: (days: number) => `${days} days ahead of the time of day`,
} as const;
