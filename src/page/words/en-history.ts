/** The English sentences about the past. */
import { duration } from '../world/age.ts';
import { clock, number } from '../world/units.ts';

const reason: Readonly<Record<string, string>> = {
  evicted: 'the buffer of the kit was full',
  thinned: 'left out to make room',
  expired: 'too old before they could be sent',
  superseded: 'replaced by a newer value',
  memory_full: 'the memory of the kit was full',
  unreadable: 'not readable on the disk of the kit',
  too_large: 'too large',
  discarded: 'discarded on the kit',
};
const event: Readonly<Record<string, string>> = {
  tamper: 'Tampering',
  doorbell: 'Doorbell',
  motion: 'Motion',
  drops: 'Messages dropped',
};

export const history = {
  event,
  reason,
  title: 'History',
  range: 'Time that is shown',
  spans: { 0: '10 min', 1: '1 h', 24: '24 h', 168: '7 d', 720: '30 d' },
  off: 'This service keeps no history: you see what this page observed.',
  missing: 'This service is older than the history: you see what this page observed.',
  failed: 'The history cannot be read now. Trying again.',
  fault: (why: string) => `Not read: ${why}`,
  loading: 'Loading',
  noValues: 'No values in this time',
  moment: 'Moment',
  past: (ms: number) => `Showing ${clock(ms)}`,
  restNow: 'Video, lists and other assets show now.',
  toNow: 'Back to now',
  locked: 'Locked while the past is shown.',
  lowHint: 'low: not observed, hatched: no answer',
  noInterruptions: 'None in this time',
  older: 'Load older entries',
  cut: (n: number) => `The newest ${number(n)} entries`,
  from: (ms: number) => `From the history, back to ${clock(ms)}.`,
  asset: 'Of which asset',
  anyAsset: 'Every asset',
  kitOnline: 'Kit online',
  kitOffline: 'Kit offline',
  linkIs: ({ name, state }: { name: string; state: string }) => `${name}: ${state}`,
  memory: 'Memory',
  lanes: 'Detections',
  track: 'Track',
  noTrack: 'No positions in this time',
  complete: 'Completeness',
  isComplete: 'Complete: every message of the kit has arrived.',
  incomplete: (n: number) =>
    n === 1 ? '1 message has not arrived.' : `${number(n)} messages have not arrived.`,
  because: ({ n, why }: { n: number; why: string }) => `${number(n)}: ${why}`,
  unexplained: 'no reason reported yet; they may be on their way',
  moreGaps: (n: number) => `${number(n)} more gaps`,
  noMessages: 'No message has arrived yet.',
  since: ({ ms, age_ms }: { ms: number; age_ms: number }) => `Kept since ${clock(ms)} (${duration(age_ms)}).`,
  positionsFrom: (ms: number) => `Oldest position still kept: ${clock(ms)}.`,
  valuesFrom: (ms: number) => `Oldest values of devices still kept: ${clock(ms)}.`,
};
