/** What single probes of one link add up to: the verdict, the figures, and the method that is trusted. Pure. */
import { texts } from '../texts.ts';
import type { Echo } from './echoes.ts';

/** One thing to ask: ICMP echo, and TCP where ICMP is filtered. */
export interface ProbeTarget {
  /** IPv4 or IPv6; no name, since the resolver leaves by the default route. */
  readonly ip: string;
  /** Port of the TCP fallback. */
  readonly port: number;
}

/** Results of the probes of the window. */
export interface ProbeReading {
  /** With hysteresis over all targets; null: not known yet. */
  readonly reachable: boolean | null;
  /**
   * When that state began (`performance.now()`): the first answer, or the last one before the outage. Null: not known,
   * or with this reading.
   */
  readonly since_ms: number | null;
  /** When the first probe left that was not answered, of those since the last answer. Null: none. */
  readonly silent_ms: number | null;
  /** Mean round trip of the replies; null without any. */
  readonly latency_ms: number | null;
  /** Mean difference of successive round trips. */
  readonly jitter_ms: number | null;
  readonly packet_loss_pct: number | null;
  /** What was answered or is tried. */
  readonly method: 'icmp' | 'tcp' | 'none';
  /** Why it is not reachable, or why nothing is known, for the technician. */
  readonly reason: string | null;
  readonly decided_by: 'probes' | 'checks';
  /** What the reader of the figures must know although the link is reachable. */
  readonly note: string | null;
}

/** Of which nothing is known. */
export const no_reading: ProbeReading = {
  reachable: null,
  since_ms: null,
  silent_ms: null,
  latency_ms: null,
  jitter_ms: null,
  packet_loss_pct: null,
  method: 'none',
  reason: null,
  decided_by: 'probes',
  note: null,
};

/** What became of a probe. `rtt_ms` null: it was answered, but its time does not measure the path. */
type Outcome = { readonly rtt_ms: number | null } | 'lost';

interface Figures {
  readonly latency_ms: number | null;
  readonly jitter_ms: number | null;
  readonly packet_loss_pct: number | null;
}

interface WindowLimits {
  /** Probes whose time is over that are kept. */
  readonly probes: number;
  /** A probe counts for the loss when so much time has passed, answered or not: else the quick answers came first. */
  readonly timeout_ms: number;
}

/** Fewer probes than this are not enough for loss. */
const loss_probes_min = 5;

interface Record {
  readonly sent_ms: number;
  readonly target: string;
  outcome: Outcome | null;
}

export class ProbeWindow {
  readonly #limits: WindowLimits;
  /** In the order of sending, by sequence number. */
  readonly #records = new Map<number, Record>();

  constructor(limits: WindowLimits) {
    this.#limits = limits;
  }

  sent(sequence: number, target: string, now_ms: number): void {
    this.#records.set(sequence, { sent_ms: now_ms, target, outcome: null });
    let surplus = this.#due(now_ms).length - this.#limits.probes;
    for (const oldest of this.#records.keys()) {
      if (surplus-- <= 0) break;
      this.#records.delete(oldest);
    }
  }

  settled(sequence: number, outcome: Outcome): void {
    const record = this.#records.get(sequence);
    if (record !== undefined) record.outcome = outcome;
  }

  figures(now_ms: number): Figures {
    const times = this.#times();
    const all = [...times.values()].flat();
    const steps = [...times.values()].flatMap((rtts) => differences(rtts));
    const answers = all.filter((rtt) => rtt !== null);
    return {
      latency_ms: mean(answers),
      jitter_ms: mean(steps),
      packet_loss_pct: this.#loss(now_ms),
    };
  }

  /** Targets that were probed and have not answered once, while others have: they are at fault, not the link. */
  silentTargets(): readonly string[] {
    const probed = new Set([...this.#records.values()].filter(isSettled).map((record) => record.target));
    const answering = this.answeringTargets();
    return answering.size === 0 ? [] : [...probed].filter((target) => !answering.has(target));
  }

  /** Forgets the probes before this one: what they met was another link, or another method. */
  dropBefore(sequence: number): void {
    for (const older of this.#records.keys()) if (older < sequence) this.#records.delete(older);
  }

  /** Share of lost probes among the targets that answer at all; of all targets when none does. */
  #loss(now_ms: number): number | null {
    const answering = this.answeringTargets();
    const counted = this.#due(now_ms).filter(
      (record) => answering.size === 0 || answering.has(record.target),
    );
    if (counted.length < loss_probes_min) return null;
    const lost = counted.filter((record) => record.outcome === null || record.outcome === 'lost').length;
    return (100 * lost) / counted.length;
  }

  /** Targets that have answered since the window began. */
  answeringTargets(): ReadonlySet<string> {
    const answered = [...this.#records.values()].filter(
      ({ outcome }) => outcome !== null && outcome !== 'lost',
    );
    return new Set(answered.map((record) => record.target));
  }

  #due(now_ms: number): readonly Record[] {
    const { timeout_ms } = this.#limits;
    return [...this.#records.values()].filter((record) => now_ms - record.sent_ms >= timeout_ms);
  }

  /** Round trips of each target in the order of sending; null where there was none to measure. */
  #times(): ReadonlyMap<string, readonly (number | null)[]> {
    const times = new Map<string, (number | null)[]>();
    for (const { target, outcome } of this.#records.values()) {
      if (outcome === null) continue;
      const rtts = times.get(target) ?? [];
      rtts.push(outcome === 'lost' ? null : outcome.rtt_ms);
      times.set(target, rtts);
    }
    return times;
  }
}

function isSettled(record: Record): boolean {
  return record.outcome !== null;
}

/** Between neighbours only: over a lost probe the way may have changed. */
function differences(rtts: readonly (number | null)[]): number[] {
  return rtts.flatMap((rtt, at) => {
    const before = at === 0 ? null : (rtts[at - 1] ?? null);
    return rtt === null || before === null ? [] : [Math.abs(rtt - before)];
  });
}

function mean(values: readonly number[]): number | null {
  if (values.length === 0) return null;
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

export type Method = 'icmp' | 'tcp';

/** Probes that the figures are made of. */
export const window_probes = 60;
/** Lost probes in a row, over all targets, until the link is unreachable; answers until it is reachable again. */
export const hysteresis = { down_after: 4, up_after: 2 } as const;
/** Lost probes in a row after which the other method is asked too, so that its answer is there before the verdict. */
const second_opinion_after = 2;
/** While TCP stands in, each so manyth probe asks by ICMP too, whether the filter is gone. */
const icmp_again_every = 10;

/** Probes whose target and time of sending are kept: more than can be under way. */
const asked_max = 1_024;
/** In doubt, so many targets that answered last are probed: they show whether the link or another target is at fault. */
const trusted_max = 2;
/** Each so manyth probe asks a target that is silent while others answer, whether it is back. */
const silent_again_every = 5;

/** Why the intended device cannot be probed, and what follows for the link. */
export interface DeviceFault {
  readonly reason: string;
  readonly reachable: false | null;
}

interface CourseOptions {
  readonly timeout_ms: number;
  /** How many there are. Before the first answer a link is unreachable only once each was probed. */
  readonly targets?: number;
  /** Whether TCP stands in where ICMP is not answered. */
  readonly tcp?: boolean;
}

const other_of = { icmp: 'tcp', tcp: 'icmp' } as const;

export class ProbeCourse {
  readonly #window: ProbeWindow;
  #verdict: Verdict = undecided;
  #method: Method = 'icmp';
  #reason: string = texts.first_probes;
  #icmp_refusal: string | null = null;
  /** What was asked before this probe was asked of another device. */
  #valid_from = 0;
  #next = 0;
  /** The first probe that left after TCP was answered while ICMP was not: what ICMP lost before may have been the link's fault. */
  #comparable_from: number | null = null;
  /** The newest echo that was lost. */
  #lost_icmp = -1;
  readonly #targets: number;
  readonly #asked = new Map<number, { readonly target: string; readonly sent_ms: number }>();
  /** By target, the newest probe that it answered. */
  readonly #answered = new Map<string, number>();
  #newest_answer = -1;
  #last_answer_ms: number | null = null;
  /** Of the current row of answers. */
  #first_hit_ms: number | null = null;
  #since_ms: number | null = null;
  /** Of the current row of losses. */
  #first_miss_ms: number | null = null;
  /** Consecutive losses and answers of each method. */
  readonly #runs = { icmp: { misses: 0, hits: 0 }, tcp: { misses: 0, hits: 0 } };

  readonly #hasTcp: boolean;

  constructor({ timeout_ms, targets = 1, tcp = true }: CourseOptions) {
    this.#targets = targets;
    this.#hasTcp = tcp;
    this.#window = new ProbeWindow({ probes: window_probes, timeout_ms });
  }

  get method(): Method {
    return this.#method;
  }

  /** Why this process may not ask by ICMP at all; null: it may, as far as is known. */
  get icmp_refusal(): string | null {
    return this.#icmp_refusal;
  }

  get in_doubt(): boolean {
    return inDoubt(this.#verdict);
  }

  /**
   * Target of the next probe: answering targets in turn, silent ones now and then; in doubt the targets that answered last, so
   * that dead targets neither give nor delay a verdict.
   */
  choose(sequence: number, targets: readonly ProbeTarget[]): ProbeTarget | undefined {
    const silent = targets.filter(({ ip }) => this.#isSilent(ip));
    const others = targets.filter(({ ip }) => !this.#isSilent(ip));
    const trusted = others
      .filter(({ ip }) => this.#answered.has(ip))
      .sort((a, b) => (this.#answered.get(b.ip) ?? 0) - (this.#answered.get(a.ip) ?? 0))
      .slice(0, trusted_max);
    if (this.in_doubt && trusted.length > 0) return trusted[sequence % trusted.length];
    const round = Math.floor(sequence / silent_again_every);
    if (silent.length > 0 && sequence % silent_again_every === 0) return silent[round % silent.length];
    return others[(sequence - (silent.length > 0 ? round : 0)) % others.length];
  }

  /** A probe leaves now. Answers the methods that it should ask by. */
  begin(sequence: number, target: string, now_ms: number): readonly Method[] {
    this.#next = sequence + 1;
    this.#window.sent(sequence, target, now_ms);
    this.#asked.set(sequence, { target, sent_ms: now_ms });
    const [oldest] = this.#asked.size > asked_max ? this.#asked.keys() : [];
    if (oldest !== undefined) this.#asked.delete(oldest);
    if (!this.#hasTcp) return [this.#method];
    const other = other_of[this.#method];
    const troubled = this.#runs[this.#method].misses >= second_opinion_after;
    const looks_back = other === 'icmp' && (this.#runs.icmp.hits > 0 || sequence % icmp_again_every === 0);
    return troubled || looks_back ? [this.#method, other] : [this.#method];
  }

  /** What became of a probe, by one of its methods. */
  settle(sequence: number, method: Method, echo: Echo): void {
    if (sequence < this.#valid_from) return;
    const answered = 'rtt_ms' in echo;
    if (!answered && echo.refused) {
      this.#refuse(method, echo.reason);
      return;
    }
    this.#record(sequence, method, echo);
    // A target that is silent while others answer is at fault itself: it is no evidence about the link or the method.
    if (!answered && this.#isSilent(this.#asked.get(sequence)?.target)) return;
    this.#count(method, answered, sequence);
    if (method === this.#method || answered) this.#judge(sequence, answered);
    if (this.#isOtherBetter()) this.#switch();
  }

  #record(sequence: number, method: Method, echo: Echo): void {
    const answered = 'rtt_ms' in echo;
    if (answered) this.#noteAnswer(sequence, echo.rtt_ms);
    if (method !== this.#method) return;
    // TCP repeats what is lost on its own: the answer shows that the link works, the repetition that it loses.
    this.#window.settled(sequence, answered && !echo.isRepeated ? echo : 'lost');
    if (!answered) this.#reason = echo.reason;
  }

  #judge(sequence: number, answered: boolean): void {
    const was = this.#verdict.reachable;
    const hasAnswered = this.#newest_answer >= 0;
    const down_after = hasAnswered ? hysteresis.down_after : Math.max(hysteresis.down_after, this.#targets);
    this.#verdict = judge(this.#verdict, { sequence, answered }, { ...hysteresis, down_after });
    const { reachable, misses } = this.#verdict;
    if (misses === 0) this.#first_miss_ms = null;
    else this.#first_miss_ms ??= this.#asked.get(sequence)?.sent_ms ?? null;
    if (reachable === was) return;
    this.#since_ms = reachable === true ? this.#first_hit_ms : this.#last_answer_ms;
    // The first answer carries the waking of modem and neighbours: the figures begin with the second.
    if (reachable === true) this.#window.dropBefore(sequence);
  }

  #noteAnswer(sequence: number, rtt_ms: number): void {
    const asked = this.#asked.get(sequence);
    if (asked === undefined) return;
    const at_ms = asked.sent_ms + rtt_ms;
    this.#answered.set(asked.target, Math.max(sequence, this.#answered.get(asked.target) ?? -1));
    this.#newest_answer = Math.max(sequence, this.#newest_answer);
    this.#last_answer_ms = Math.max(at_ms, this.#last_answer_ms ?? at_ms);
    if (this.#verdict.hits === 0) this.#first_hit_ms = at_ms;
  }

  /** It has not answered for a whole window while others did; at the start: while others did at all. */
  #isSilent(target: string | undefined): boolean {
    if (target === undefined || this.#newest_answer < 0) return false;
    return (this.#answered.get(target) ?? Number.NEGATIVE_INFINITY) < this.#newest_answer - window_probes;
  }

  /** This probe cannot be sent: the device is gone, or another one has taken its name, which nothing is known of. */
  lose(sequence: number, { reason, reachable }: DeviceFault): void {
    this.#reason = reason;
    this.#verdict = { ...undecided, reachable };
    this.#valid_from = sequence + 1;
    this.#answered.clear();
    this.#newest_answer = -1;
    this.#last_answer_ms = null;
    this.#since_ms = null;
    this.#first_miss_ms = null;
    this.#window.dropBefore(sequence + 1);
  }

  read(now_ms: number): ProbeReading {
    const { reachable } = this.#verdict;
    const state = { ...no_reading, reachable, since_ms: this.#since_ms, silent_ms: this.#first_miss_ms };
    if (reachable === true) {
      const note = this.#method === 'tcp' ? texts.tcp_stands_in : null;
      return { ...state, ...this.#window.figures(now_ms), method: this.#method, note };
    }
    const packet_loss_pct = reachable === false ? 100 : null;
    const method = reachable === null ? 'none' : this.#method;
    return { ...state, packet_loss_pct, method, reason: this.#reason };
  }

  silentTargets(): readonly string[] {
    return this.#window.silentTargets();
  }

  answeringTargets(): ReadonlySet<string> {
    return this.#window.answeringTargets();
  }

  #count(method: Method, answered: boolean, sequence: number): void {
    const run = this.#runs[method];
    run.misses = answered ? 0 : run.misses + 1;
    run.hits = answered ? run.hits + 1 : 0;
    // A TCP answer from before the last ICMP answer is no reason to leave ICMP.
    if (answered && method === 'icmp') this.#runs.tcp.hits = 0;
    if (this.#runs.tcp.hits === 0) this.#comparable_from = null;
    else this.#comparable_from ??= this.#next;
    if (method === 'icmp' && !answered) this.#lost_icmp = sequence;
  }

  /**
   * ICMP is left when no target answers it while TCP is answered, and is taken again as soon as it is answered. When a link
   * comes back, TCP repeats what was lost and is answered first: so an echo must be lost that left after that answer.
   */
  #isOtherBetter(): boolean {
    const { icmp, tcp } = this.#runs;
    if (this.#method === 'tcp') return icmp.hits >= hysteresis.up_after;
    const isCompared = this.#comparable_from !== null && this.#lost_icmp >= this.#comparable_from;
    return icmp.misses >= hysteresis.down_after && tcp.hits > 0 && isCompared;
  }

  #switch(): void {
    this.#method = other_of[this.#method];
    // Times of a handshake and of an echo are not the same thing, and what is on its way was asked by the other method.
    this.#window.dropBefore(this.#next);
  }

  /** A right is missing: that is no evidence about the link. */
  #refuse(method: Method, reason: string): void {
    this.#reason = reason;
    if (method === 'tcp') return;
    this.#icmp_refusal = reason;
    if (this.#method === 'icmp' && this.#hasTcp) this.#switch();
  }
}

interface Hysteresis {
  /** Lost probes in a row, over all targets, until the link counts as unreachable. */
  readonly down_after: number;
  /** Answers in a row until it counts as reachable again. */
  readonly up_after: number;
}

interface Verdict {
  readonly reachable: boolean | null;
  /** Probes lost since the newest answer. */
  readonly misses: number;
  /** Answers since the newest lost probe. */
  readonly hits: number;
  /** Sequence number of the newest probe that was answered; -1: none. */
  readonly answered: number;
}

export const undecided: Verdict = { reachable: null, misses: 0, hits: 0, answered: -1 };

/**
 * The verdict after one more probe. A loss becomes known a timeout after its probe was sent, so newer probes may have
 * been answered by then: such a loss counts for the loss figure, but is no evidence about the link as it is now.
 */
export function judge(
  verdict: Verdict,
  probe: { readonly sequence: number; readonly answered: boolean },
  { down_after, up_after }: Hysteresis,
): Verdict {
  if (probe.answered) {
    const hits = verdict.hits + 1;
    const reachable = hits >= up_after ? true : verdict.reachable;
    return { reachable, misses: 0, hits, answered: Math.max(verdict.answered, probe.sequence) };
  }
  if (probe.sequence < verdict.answered) return verdict;
  const misses = verdict.misses + 1;
  const reachable = misses >= down_after ? false : verdict.reachable;
  return { ...verdict, reachable, misses, hits: 0 };
}

/** The next probes may change the verdict: they should come soon. */
function inDoubt({ reachable, misses, hits }: Verdict): boolean {
  if (reachable === null) return true;
  return reachable ? misses > 0 : hits > 0;
}
