/** Sentences about signing that people read; tests refer to them by name. */
export const texts = {
  clock_write_failed: 'cannot store the signing clock; vehicles may ignore this kit after a restart',
  clock_damaged: 'signing clock file is damaged; starting at the time of day',
  key_unreadable: (path: string, reason: string) => `signing.key_file: cannot read ${path} (${reason})`,
  key_empty: (path: string) => `signing.key_file: ${path} is empty; write the passphrase into it`,
} as const;
