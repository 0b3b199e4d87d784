/** Sentences of the driver that people read; tests refer to them by name. */
export const texts = {
  no_identity: 'it reports neither a serial number nor a MAC address; set identity in the configuration',
  no_picture: (status: number) =>
    status === 401 || status === 403
      ? `refuses the login for its picture (HTTP status ${status}); pictures need HTTP digest`
      : `gives no picture (HTTP status ${status})`,
  no_picture_address: 'reports no address of a picture',
  serial_changed: 'camera reported another serial number than before; identified by its MAC address',
  events_lost: 'event subscription lost; subscribing again',
  events_unavailable: 'camera events unavailable; motion unknown',
} as const;
