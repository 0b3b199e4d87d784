/** Sentences of the application that people read; tests refer to them by name. */
export const texts = {
  service_failed: 'service start failed; retrying',
  service_started: 'service started',
  history_damaged: 'history could not be opened; starting a new one, the old file is kept',
  partner_failed: 'partner asset not published; the next change or sync repeats it',
  saving_power: 'battery low; saving power as configured',
  power_back: 'battery charging or charged; power no longer saved',
  rates_reduced: 'rates are reduced',
  no_speed_tests: 'speed tests are off',
  events_only: 'cameras report events only',
  battery_low: (pct: number | null, savings: string) =>
    `the battery is low${pct === null ? '' : ` (${pct} %)`}: ${savings}; charge it`,
  command_saved: (name: string) =>
    `${name} is off while the battery of the kit is low (low_battery); charge it`,
  key_created: 'API key created; stored in the file',
  level_configured: 'log level reset to the configured one',
  level_set: (level: string, time: string) => `log level set to ${level} for ${time}`,
} as const;
