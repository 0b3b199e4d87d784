/** The witness of what reaches the broker: a raw subscriber in a process of its own, and the questions it answers. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { sleep, within } from '../../../src/platform/time.ts';
import type { Range, Sighting } from '../witness.ts';

export interface SubscriberOptions {
  readonly target: { readonly port: number; readonly host: '127.0.0.1' } | { readonly socket: string };
  readonly filters: readonly string[];
  readonly client_id: string;
  readonly clean: boolean;
  readonly username?: string;
  readonly password?: string;
  /** Publishes `down/ack` for this kit, as a cloud does that has stored what came. */
  readonly cloud_of?: string;
}

export type Question = { readonly kind: 'report' | 'ranges' | 'reset' };
export type Answer =
  | { readonly kind: 'subscribed' | 'done' }
  | { readonly kind: 'report'; readonly sighting: Sighting }
  | { readonly kind: 'ranges'; readonly ranges: Record<number, Range[]> };

export interface Subscriber {
  readonly pid: number;
  /** What arrived since the start or the last reset. */
  report(): Promise<Sighting>;
  /** The numbers that arrived, by epoch. */
  ranges(): Promise<Record<number, Range[]>>;
  reset(): Promise<void>;
  /** Asks until `enough` or until `ms` are over, and answers the last report. */
  until(enough: (sighting: Sighting) => boolean, ms?: number): Promise<Sighting>;
  stop(): Promise<void>;
}

const subscribed_ms = 60_000;
const answer_ms = 60_000;
const ask_every_ms = 50;

/** Starts a subscriber and resolves once the broker has granted its subscription. */
export async function startSubscriber(
  target: number | { readonly socket: string },
  options: Partial<Omit<SubscriberOptions, 'target'>> = {},
): Promise<Subscriber> {
  const settings: SubscriberOptions = {
    filters: ['k1/+/up/#'],
    client_id: `witness-${process.pid}-${Math.floor(performance.now())}`,
    clean: true,
    ...options,
    target: typeof target === 'number' ? { port: target, host: '127.0.0.1' } : target,
  };
  const entry = new URL('subscriber-process.ts', import.meta.url);
  const child = fork(entry, [JSON.stringify(settings)], { serialization: 'advanced', execArgv: [] });
  const exited = once(child, 'exit');
  const answerOf = async <K extends Answer['kind']>(
    kind: K,
    ms: number,
  ): Promise<Extract<Answer, { kind: K }>> => {
    const found = Promise.withResolvers<Extract<Answer, { kind: K }>>();
    const take = (answer: Answer): void => {
      if (isKind(answer, kind)) found.resolve(answer);
    };
    child.on('message', take);
    const answer = await within(ms, found.promise);
    child.off('message', take);
    if (!answer) throw new Error(`the subscriber did not answer ${kind} within ${ms} ms`);
    return answer;
  };
  const ask = async <K extends Answer['kind']>(
    question: Question,
    kind: K,
  ): Promise<Extract<Answer, { kind: K }>> => {
    const answer = answerOf(kind, answer_ms);
    child.send(question);
    return answer;
  };
  const report = async (): Promise<Sighting> => (await ask({ kind: 'report' }, 'report')).sighting;
  await answerOf('subscribed', subscribed_ms);
  return {
    pid: child.pid ?? 0,
    report,
    ranges: async () => (await ask({ kind: 'ranges' }, 'ranges')).ranges,
    async reset() {
      await ask({ kind: 'reset' }, 'done');
    },
    async until(enough, ms = answer_ms) {
      const deadline_ms = performance.now() + ms;
      for (;;) {
        const sighting = await report();
        if (enough(sighting) || performance.now() > deadline_ms) return sighting;
        await sleep(ask_every_ms, new AbortController().signal);
      }
    },
    async stop() {
      if (child.connected) child.disconnect();
      await exited;
    },
  };
}

function isKind<K extends Answer['kind']>(answer: Answer, kind: K): answer is Extract<Answer, { kind: K }> {
  return answer.kind === kind;
}
