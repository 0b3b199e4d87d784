/** Sentences of the driver that people read; tests refer to them by name. */
export const texts = {
  asleep: 'the camera is asleep to save its battery',
  channel_offline: 'the recorder has no connection to this camera',
  no_channels: 'does not report its channels',
  owed_failed: 'stop of an earlier move, or of a siren or light, failed; retrying',
  no_identity: 'reports neither a UID nor a MAC address; set identity to the serial number on its label',
} as const;
