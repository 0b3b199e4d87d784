/** Sentences of the modem driver that people read; those of the states of a modem stand in words.ts; tests refer to them by name. */
export const texts = {
  position_available: 'modem position available',
  position_unavailable: 'cannot read a position from the modems',
  receivers_off: 'satellite receiver off on every modem',
  switch_receiver_on: 'switch it on with mmcli -m any --location-enable-gps-raw, or use gpsd',
  unplugged: 'modem: unplugged or restarting',
  renamed: (now: string) =>
    `modem: its interface is ${now} now; name that one in the configuration, or give it a lasting name (systemd.link)`,
  multiplexed: (now: string) => `modem: its connection is ${now}; name that one in the configuration`,
  manager_missing: 'ModemManager is not running; install or start it (systemctl start ModemManager)',
  manager_ended: 'ModemManager has exited',
  list_refused: (reason: string) => `ModemManager does not list its modems: ${reason}`,
  list_unreadable: 'ModemManager answers with a list that cannot be read',

  // Signal
  modem_stuck: 'modem does not answer ModemManager; its signal figures are not read',
  reset_modem: 'reset the modem (mmcli -m N --reset), or cut its power',
  signal_unsupported: 'modem has no signal figures',
  stop_asking: 'set signal_interval_s to 0, or update ModemManager',
  signal_refused: 'ModemManager does not read signal figures for this user',
  allow_signal:
    'allow org.freedesktop.ModemManager1.Device.Control for the daemon in a polkit rule, or set signal_interval_s to 0',

  // Reset
  reset:
    'Resets a modem. Its link is down for a minute or more; completed when ModemManager lists the modem again.',
  reset_interface: 'network interface of the modem',
  resetting: 'modem is restarting',
  modem_absent: (name: string) => `no modem with the interface ${name} is listed now`,
  reset_refused: (reason: string) => `ModemManager refused the reset: ${reason}`,
  reset_forbidden: (reason: string) =>
    `ModemManager refused the reset: ${reason}; it needs the right org.freedesktop.ModemManager1.Device.Control (polkit)`,
  modem_not_back: 'the modem accepted the reset and was not listed again as a new one',
} as const;
