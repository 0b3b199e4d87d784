/** Why a message was given up before delivery. */
export const drop_reasons = [
  'evicted',
  'thinned',
  'expired',
  'superseded',
  'memory_full',
  'unreadable',
  'too_large',
  'discarded',
] as const;
