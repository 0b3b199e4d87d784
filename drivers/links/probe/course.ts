/** What single probes of one link add up to: the verdict, the figures, and the method that is trusted. Pure. */
import { texts } from '../texts.ts';
import type { ProbeReading } from './api.ts';
import type { Echo } from './echoes.ts';
import { inDoubt, judge, undecided, type Verdict } from './verdict.ts';
import { ProbeWindow } from './window.ts';

export type Method = 'icmp' | 'tcp';

/** Probes that the figures are made of. */
export const window_probes = 60;
/** Lost probes in a row, over all targets, until the link is unreachable; answers until it is reachable again. */
export const hysteresis = { down_after: 4, up_after: 2 } as const;
/** Lost probes in a row after which the other method is asked too, so that its answer is there before the verdict. */
const second_opinion_after = 2;
/** While TCP stands in, each so manyth probe asks by ICMP too, whether the filter is gone. */
const icmp_again_every = 10;

/** Why the intended device cannot be probed, and what follows for the link. */
export interface DeviceFault {
  readonly reason: string;
  readonly reachable: false | null;
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
  /** Consecutive losses and answers of each method. */
  readonly #runs = { icmp: { misses: 0, hits: 0 }, tcp: { misses: 0, hits: 0 } };

  constructor({ timeout_ms }: { readonly timeout_ms: number }) {
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

  /** A probe leaves now. Answers the methods that it should ask by. */
  begin(sequence: number, target: string, now_ms: number): readonly Method[] {
    this.#next = sequence + 1;
    this.#window.sent(sequence, target, now_ms);
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
    this.#count(method, answered, sequence);
    if (method === this.#method) this.#window.settled(sequence, answered ? echo : 'lost');
    if (method === this.#method || answered) {
      if (!answered) this.#reason = echo.reason;
      const was = this.#verdict.reachable;
      this.#verdict = judge(this.#verdict, { sequence, answered }, hysteresis);
      // The first answer carries the waking of modem and neighbours: the figures begin with the second.
      if (this.#verdict.reachable === true && was !== true) this.#window.dropBefore(sequence);
    }
    if (this.#isOtherBetter()) this.#switch();
  }

  /** This probe cannot be sent: the device is gone, or another one has taken its name, which nothing is known of. */
  lose(sequence: number, { reason, reachable }: DeviceFault): void {
    this.#reason = reason;
    this.#verdict = { ...undecided, reachable };
    this.#valid_from = sequence + 1;
    this.#window.dropBefore(sequence + 1);
  }

  read(now_ms: number): ProbeReading {
    const { reachable } = this.#verdict;
    if (reachable === true) {
      return { reachable, ...this.#window.figures(now_ms), method: this.#method, reason: null };
    }
    const packet_loss_pct = reachable === false ? 100 : null;
    const method = reachable === null ? 'none' : this.#method;
    return { reachable, latency_ms: null, jitter_ms: null, packet_loss_pct, method, reason: this.#reason };
  }

  silentTargets(): readonly string[] {
    return this.#window.silentTargets();
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

  /** A right is missing: that says nothing of the link. */
  #refuse(method: Method, reason: string): void {
    this.#reason = reason;
    if (method === 'tcp') return;
    this.#icmp_refusal = reason;
    if (this.#method === 'icmp') this.#switch();
  }
}
