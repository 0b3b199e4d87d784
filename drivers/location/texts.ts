/** Sentences of the location driver that people read; tests refer to them by name. */
import type { ReceiverState } from './receivers.ts';

export const texts = {
  states: {
    fix: 'receiver got a fix',
    'no fix': 'receiver has no fix; it needs a view of the sky',
    mute: 'receiver sends nothing; check its cable and its device in gpsd',
    waiting: 'waiting for the receiver',
  } satisfies Readonly<Record<ReceiverState, string>>,
  gpsd_refused: 'check that gpsd runs, and its address and port',
  gpsd_failed: (host: string, port: number, reason: string) => `gpsd at ${host}:${port}: ${reason}`,
  connection_closed: 'closed the connection',
  too_many_lines: (max: number) => `sends more than ${max} lines a second; check that gpsd runs on this port`,
  line_too_long: 'line exceeds the limit; check that gpsd runs on this port',
  no_greeting: 'sends no greeting; check that gpsd runs on this port',
  not_gpsd: 'answers with something that is not gpsd; check its address and port',
} as const;
