/** The last probes of one link and their results: latency, jitter, loss. Pure; every moment is given. */

/** What became of a probe. `rtt_ms` null: it was answered, but its time does not measure the path. */
type Outcome = { readonly rtt_ms: number | null } | 'lost';

export interface Figures {
  readonly latency_ms: number | null;
  readonly jitter_ms: number | null;
  readonly packet_loss_pct: number | null;
}

export interface WindowLimits {
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
