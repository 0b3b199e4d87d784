/** Why a message was dropped before delivery. */
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
