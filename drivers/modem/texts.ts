/** Sentences of the modem driver that people read; those of the states of a modem stand in words.ts; tests refer to them by name. */
export const texts = {
  position_available: 'modem position available',
  position_unavailable: 'cannot read a position from the modems',
  receivers_off: 'satellite receiver off on every modem',
  switch_receiver_on: 'switch it on with mmcli -m any --location-enable-gps-raw, or use gpsd',
  unplugged: 'modem: unplugged or restarting',
  manager_missing: 'ModemManager is not running; install or start it (systemctl start ModemManager)',
  manager_ended: 'ModemManager has ended',
  list_refused: (reason: string) => `ModemManager does not list its modems: ${reason}`,
  list_unreadable: 'ModemManager answers with a list that cannot be read',

  // Signal
  signal_refused: 'ModemManager does not read signal figures for this user',
  allow_signal:
    'allow org.freedesktop.ModemManager1.Device.Control for the daemon in a polkit rule, or set signal_interval_s to 0',
} as const;
