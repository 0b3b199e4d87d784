/** Sentences of the driver that people read; tests refer to them by name. */
export const texts = {
  asleep: 'the camera is asleep to save its battery',
  channel_offline: 'the recorder has no connection to this camera',
} as const;
