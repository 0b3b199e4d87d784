/** Formats the progress of draining the backlog. Pure. */
import type { StatusReport } from '../../local/api.ts';
import { duration } from './shell.ts';
import { texts } from '../texts.ts';
import { progressText } from './progress.ts';

export type DrainReport = NonNullable<StatusReport['outbox']['drain']>;

/** `draining  ██████░░░░  62 %  12,340 messages left  1,211/s  10s left` */
export function drainText({ from, left, per_s, left_s, waits }: DrainReport): string {
  if (typeof waits === 'string') return texts.waiting(left, waits);
  const facts = [
    texts.messages_left(left),
    texts.per_second(per_s),
    left_s === null ? '' : texts.time_left(duration(left_s)),
  ].filter(Boolean);
  return progressText({ what: texts.draining, done: from - left, total: from, facts });
}
