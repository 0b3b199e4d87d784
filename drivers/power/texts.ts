/** Sentences of the power driver that people read; tests refer to them by name. */
export const texts = {
  battery_low: 'battery low; charge it or switch off what is not needed',
  battery_recovered: 'battery no longer low',
  ups_alarm: 'UPS reported an alarm',
  ups_alarm_cleared: 'UPS alarm cleared',
  charge_unreadable: (names: string) => `cannot read the charge of ${names}`,
  no_battery: (dir: string) => `no battery in ${dir}`,
  sysfs_timeout: (dir: string) => `${dir}: timed out`,
  ups_starting: 'the UPS driver is starting',
  charge_unknown: 'the UPS does not report its charge',
  alarm_unnamed: 'alarm without a description',
  upsd_refused: 'check that upsd runs, and its address and port',
  data_stale: 'upsd has no fresh data from the UPS; check its cable and its driver',
  driver_not_connected: 'the UPS driver is not running; check upsdrvctl',
  endless_list: (what: string) => `LIST ${what}: upsd reply exceeds the limit`,
  endless_answer: 'reply exceeds the limit',
  connection_closed: 'closed the connection',
  answer_timeout: (seconds: number) =>
    `does not answer within ${seconds} s; check that upsd runs, and its address and port`,
  not_upsd: 'answers with something that is not upsd; check its address and port',
  ups_unnamed: 'no UPS name is configured',
  ups_unknown: (name: string) => `UPS ${name} not found`,
  ups_none: 'upsd has no UPS',
  ups_known: (names: string) => `upsd has ${names}`,
  more: (count: number) => `and ${count} more`,
  password_lines: (file: string) =>
    `nut.password_file: ${file} has more than one line; write the password alone into it`,
} as const;
