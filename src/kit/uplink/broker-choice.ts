/** Which of several brokers the kit uses: the first while it works, else the next ones, and where a broker sends the kit on (MQTT 5 section 4.11). */
import type { BrokerOptions } from '../../mqtt/broker.ts';
import type { Details } from '../../mqtt/codes.ts';
import { type ConnectOptions } from '../../mqtt/connect.ts';
import { wayTo } from '../../mqtt/proxy.ts';
import { isWithin, serversIn } from '../../mqtt/server-reference.ts';
import { openSession } from '../../mqtt/session.ts';
import { within } from '../../platform/time.ts';
import type { UplinkLog } from './connection-state.ts';
import type { Problems } from './problems.ts';
import { texts } from './texts.ts';

/** The next broker is tried after this time without a session that works. */
export const next_after_ms = 60_000;
/** A session works once it has held for so long: a broker may accept each connection and end it. */
export const works_after_ms = 30_000;
/** While another one is used, the first is tried this often; twice as seldom after each time that it did not work, up to eight times. */
export const first_again_ms = 600_000;
const seldom_max = 8;
/** The first one must keep a trial connection for so long before the session with another one is given up for it. */
const trial_ms = 2_000;
/** Brokers one after the other that send the kit on, before it stays with those of the configuration. */
const hops_max = 3;

const code = { use_another: 0x9c, moved: 0x9d } as const;

/** How a session or an attempt ended: the code of CONNACK or DISCONNECT, and what the broker added to it. */
export interface End {
  readonly code: number | undefined;
  readonly server_reference: Details['serverReference'];
}

export interface BrokerChoiceOptions {
  /** In the order of the configuration; one at least. */
  readonly brokers: readonly BrokerOptions[];
  /** Hosts, with the names below them, that a broker may send the kit on to, beside its own domain. */
  readonly redirect_to: readonly string[];
  /** Monotonic time. */
  readonly now: () => number;
  /** When the route to the brokers changed last; null: never. */
  readonly routeChanged_ms: () => number | null;
  readonly problems: Pick<Problems, 'note' | 'clear'>;
  readonly log: Pick<UplinkLog, 'info'>;
}

export class BrokerChoice {
  readonly #options: BrokerChoiceOptions;
  #at = 0;
  #current: BrokerOptions;
  /** Where the broker at `#at` has moved to for good, or named another server for the next connection. */
  #moved: BrokerOptions | undefined;
  #another: BrokerOptions | undefined;
  /** Addresses that sent the kit on, in a row. */
  #hops: readonly string[] = [];
  /** Since when no session works. */
  #without_since_ms: number;
  #attempt_ms = Number.NEGATIVE_INFINITY;
  #hasFailed = false;
  /** Brokers that failed in a row, in this round through all of them. */
  #failures = 0;
  #last_words = '';
  /** Since when the first one is to be tried again. */
  #tried_first_ms = 0;
  #seldom = 1;

  constructor(options: BrokerChoiceOptions) {
    this.#options = options;
    this.#current = this.#configured(0);
    this.#without_since_ms = options.now();
  }

  get current(): BrokerOptions {
    return this.#current;
  }

  get first(): BrokerOptions {
    return this.#configured(0);
  }

  /** Until an attempt at the next broker is due; Infinity: only after a failure. */
  get untilNext_ms(): number {
    const left_ms = this.#without_since_ms + next_after_ms - this.#options.now();
    return this.#options.brokers.length > 1 && left_ms > 0 ? left_ms : Infinity;
  }

  /** Chooses the broker of the attempt that begins now. */
  next(): void {
    const { now, routeChanged_ms, brokers } = this.#options;
    const changed_ms = routeChanged_ms() ?? Number.NEGATIVE_INFINITY;
    const before = this.#current;
    if (this.#isOverdue && this.#attempt_ms < changed_ms) {
      // What failed before says nothing of the brokers, but of the network that is there no more.
      this.#turnTo(0);
      this.#without_since_ms = now();
    } else if (this.#hasFailed && this.#isOverdue) this.#turnTo((this.#at + 1) % brokers.length);
    this.#hasFailed = false;
    this.#attempt_ms = now();
    this.#current = this.#another ?? this.#moved ?? this.#configured(this.#at);
    if (this.#current.url !== before.url)
      this.#options.log.info({ broker: wayTo(this.#current), before: wayTo(before) }, texts.other_broker);
  }

  /** An attempt failed, or a session ended that did not work. Returns when the next attempt follows. */
  failed(words: string, end: End): 'at_once' | 'later' {
    if (this.#follows(end)) return 'at_once';
    this.#another = undefined;
    this.#hops = [];
    this.#hasFailed = true;
    if (this.#at === 0) this.#last_words = words;
    const { length } = this.#options.brokers;
    // A broker that sends the kit away without naming another one.
    if (end.code === code.use_another && length > 1) this.#without_since_ms = Number.NEGATIVE_INFINITY;
    if (!this.#isOverdue) return 'later';
    this.#failures = (this.#failures + 1) % length;
    return this.#failures === 0 ? 'later' : 'at_once';
  }

  /** A session ended after it was served for `held_ms`. */
  ended(held_ms: number, words: string, end: End): 'at_once' | 'later' {
    if (held_ms < works_after_ms) return this.failed(words, end);
    this.#without_since_ms = this.#options.now();
    this.#failures = 0;
    this.#hops = [];
    if (this.#at === 0) this.#seldom = 1;
    if (this.#follows(end)) return 'at_once';
    this.#another = undefined;
    return 'later';
  }

  /** The broker serves the kit. */
  connected(): void {
    const { problems } = this.#options;
    const used = wayTo(this.#current);
    if (this.#at === 0) problems.clear('other_broker');
    else
      problems.note('other_broker', {
        sentence: texts.uses_other_broker(wayTo(this.first), this.#last_words, used),
        line: texts.first_broker_away,
        facts: { broker: used },
      });
    if (this.#moved === undefined) problems.clear('moved');
    else
      problems.note('moved', {
        sentence: texts.broker_moved(wayTo(this.#configured(this.#at)), used),
        line: texts.other_broker,
        facts: { broker: used },
      });
  }

  /** Another broker is used, and the first is to be tried. To be called while a session is served. */
  get isFirstDue(): boolean {
    const due_ms = this.#tried_first_ms + first_again_ms * this.#seldom;
    return this.#at > 0 && this.#options.now() >= due_ms;
  }

  /** The first one is being tried, beside the session with another. */
  firstTried(): void {
    this.#tried_first_ms = this.#options.now();
  }

  /** The first one accepted the kit: the next attempt is there, and the others follow at once if it does not work after all. */
  backToFirst(): void {
    this.#turnTo(0);
    this.#hasFailed = false;
    this.#failures = 0;
    this.#seldom = Math.min(2 * this.#seldom, seldom_max);
    this.#without_since_ms = Number.NEGATIVE_INFINITY;
  }

  get #isOverdue(): boolean {
    return this.#options.now() - this.#without_since_ms >= next_after_ms;
  }

  #turnTo(at: number): void {
    if (this.#at === 0) this.#tried_first_ms = this.#options.now();
    this.#at = at;
    this.#moved = undefined;
    this.#another = undefined;
  }

  #configured(at: number): BrokerOptions {
    const broker = this.#options.brokers[at];
    if (broker === undefined) throw new Error('there is no such broker');
    return broker;
  }

  /** Whether the broker named another one that the kit may go to. */
  #follows(end: End): boolean {
    if ((end.code !== code.use_another && end.code !== code.moved) || !end.server_reference) return false;
    const { brokers, redirect_to } = this.#options;
    const from = this.#current;
    const named = serversIn(end.server_reference, from.url);
    const url = named.find((each) => isWithin(each, brokers, redirect_to));
    const hops = [...this.#hops, from.url];
    if (url === undefined || hops.includes(url) || hops.length > hops_max) {
      this.#options.problems.note('redirect', {
        sentence: (url === undefined ? texts.redirect_refused : texts.redirected_in_circles)(
          wayTo(from),
          end.server_reference,
        ),
        line: texts.redirect_not_followed,
        facts: { broker: wayTo(from), named: end.server_reference },
        lasts: 'for_a_while',
      });
      return false;
    }
    this.#hops = hops;
    // Its certificate has its own name.
    const target = { ...from, url, tls_name: undefined };
    if (end.code === code.moved) this.#moved = target;
    else this.#another = target;
    return true;
  }
}

/**
 * Whether a broker accepts the kit and keeps the connection for a moment. Nothing is subscribed or published, and nothing of what it has
 * queued is acknowledged: the session that follows receives it.
 */
export async function acceptsKit(
  options: Omit<ConnectOptions, 'onMessage' | 'onOversize' | 'receive_maximum'>,
  onAccepted: () => void,
  signal: AbortSignal,
): Promise<boolean> {
  const quiet = { receive_maximum: 1, onMessage: async () => false, onOversize: () => undefined };
  const session = await openSession({ ...options, ...quiet }, signal).catch(() => undefined);
  if (session === undefined) return false;
  onAccepted();
  const isClosed = (await within(trial_ms, session.closed, signal)) !== undefined;
  await session.end();
  return !isClosed;
}
