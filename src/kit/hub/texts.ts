/** Sentences of the hub that people read; tests refer to them by name. */
export const texts = {
  asset_refused: 'asset refused; dropping its data',
  asset_not_configured: 'removed asset that is no longer configured',
  stream_withheld: 'camera stream withheld; no video',
  command_twice: 'driver announced two commands with one name; using the first',
  commands_too_many: 'driver announced too many commands; ignoring this one',
  feed_invalid: 'feed message did not match its schema; dropped',
  feed_undeclared: 'driver published an undeclared feed; dropped',
  position_not_saved: 'kit position not saved; a restart forgets it',
  city_failed: 'city lookup failed; reinstall kit-connector',
  telemetry_invalid: 'kit telemetry did not match its schema; part dropped',
  telemetry_twice: 'two drivers reported this part of the kit; using the first',
  driver_stopped: 'the driver was stopped',
  driver_ended: 'driver ended before it was stopped',
  driver_removed_it: 'its driver removed it',
  carries_broker: 'carries the broker connection; other traffic uses another link',
  interface_gone: 'the interface is gone',
  no_position: 'no driver has reported a position yet',
  driver_abandoned: 'driver did not stop in time; abandoned',
  no_pictures: 'this kit runs no service that can serve pictures',
  pictures_busy: 'pictures of other cameras are being taken; ask again',
  picture_offline: (name: string, reason: string | null) =>
    `${name} is offline${reason === null ? '' : `: ${reason}`}`,
  picture_late: (seconds: number) => `returned no picture within ${seconds} s`,
  rejected_at: (reason: string, tried_at: string, next_try_at: string) =>
    `${reason} (tried at ${tried_at}; next attempt at ${next_try_at})`,
} as const;
