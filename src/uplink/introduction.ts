/** What a connection begins with: the subscriptions and the birth, before anything else is sent. */
import { downFilter, downFilters } from '../contract/topics.ts';
import { codeInWords, reasonOf } from '../mqtt/codes.ts';
import type { Outgoing, Session } from '../mqtt/session.ts';
import { within } from '../platform/time.ts';
import type { Problems } from './problems.ts';
import { texts } from './texts.ts';

export interface IntroductionOptions {
  readonly kit_id: string;
  readonly birth: Outgoing;
  readonly timeout_ms: number;
  /** Whether to end the subscription to everything that kits before contract 1.1 left in their session. */
  readonly drops_old_filter: boolean;
  readonly problems: Problems;
}

/**
 * Rejects when the connection ends, the broker does not answer or `signal` aborts. Refusals are noted, and the kit continues
 * without.
 */
export async function introduce(
  session: Session,
  options: IntroductionOptions,
  signal: AbortSignal,
): Promise<void> {
  const { kit_id, birth, timeout_ms, drops_old_filter, problems } = options;
  const introduced = (async () => {
    // A dispatch must never be retained: with `rap` one shows also when it is published while the kit is connected.
    noteRefused(await session.subscribe(downFilters(kit_id), { rap: true }), problems);
    if (session.session_present && drops_old_filter) await session.unsubscribe(downFilter(kit_id));
    noteBirth((await session.publishAndWait(birth)).code, birth.topic, problems);
    return true;
  })();
  const done = await within(timeout_ms, introduced, signal);
  signal.throwIfAborted();
  if (!done) throw new Error('the broker accepted the connection and did not answer');
}

/** A kit that cannot be commanded still sends what it has. */
export function noteRefused(refused: ReadonlyMap<string, number>, problems: Problems): void {
  const [first] = refused;
  if (!first) {
    problems.clear('subscription');
    return;
  }
  const [topic, code] = first;
  const reason = codeInWords(code);
  problems.note('subscription', {
    sentence: `broker refuses the subscription to ${topic} (${reason}): tasks or settings of the cloud do not arrive; ${reasonOf(code).remedy}`,
    line: texts.subscription_refused,
    facts: { topics: [...refused.keys()], reason },
    lasts: 'until_cleared',
  });
}

/** Notes whether the broker took the birth. */
export function noteBirth(code: number, topic: string, problems: Problems): void {
  if (code < 0x80) {
    problems.clear('presence');
    return;
  }
  const reason = codeInWords(code);
  problems.note('presence', {
    sentence: `broker refuses ${topic} (${reason}): the cloud does not see this kit online; ${reasonOf(code).remedy}`,
    line: 'broker refused the presence of the kit; continuing without it',
    facts: { topic, reason },
    lasts: 'until_cleared',
  });
}
