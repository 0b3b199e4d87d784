/** Sentences of the location driver that people read, by state of the receiver; tests refer to them by name. */
import type { ReceiverState } from './receivers.ts';

export const texts = {
  fix: 'receiver got a fix',
  'no fix': 'receiver has no fix; it needs a view of the sky',
  mute: 'receiver sends nothing; check its cable and its device in gpsd',
  waiting: 'waiting for the receiver',
} as const satisfies Readonly<Record<ReceiverState, string>>;
