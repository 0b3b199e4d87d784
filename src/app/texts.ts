/** Sentences of the application that people read; tests refer to them by name. */
export const texts = {
  service_failed: 'service start failed; retrying',
  service_started: 'service started',
  history_damaged: 'history could not be opened; starting a new one, the old file is kept',
  partner_failed: 'partner asset not published; the next change or sync repeats it',
  key_created: 'API key created; stored in the file',
  level_configured: 'log level reset to the configured one',
  level_set: (level: string, time: string) => `log level set to ${level} for ${time}`,
} as const;
