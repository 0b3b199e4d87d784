/** Runs one prober and one checker for each present link; starts new ones when the interface is replaced. */
import type { DriverLog } from '../../src/toolkit/driver/driver.ts';
import type { Check, CheckReading } from './checks/api.ts';
import type { startChecker } from './checks/checker.ts';
import { no_reading, type ProbeReading, type ProbeTarget } from './probe/course.ts';
import type { startProber } from './probe/prober.ts';
import type { Family } from '../../src/platform/linux/socket-address.ts';
import { texts } from './texts.ts';

/** What can be asked over a link now. */
export interface Asked {
  readonly targets: readonly ProbeTarget[];
  readonly checks: readonly Check[];
  /** In which packets can leave by it. */
  readonly families: readonly Family[];
}

interface Probed {
  readonly name: string;
  readonly ifindex: number;
  readonly asked: Asked;
  /** Between two probes. */
  readonly interval_ms: number;
  /** Between two rounds of checks. */
  readonly check_interval_ms: number;
}

interface ProbingSpec {
  readonly start: typeof startProber;
  readonly startChecker: typeof startChecker;
  readonly tcp: boolean;
  /** What the configuration has. */
  readonly hasTargets: boolean;
  readonly hasChecks: boolean;
  readonly timeout_ms: number;
  readonly check_timeout_ms: number;
  readonly signal: AbortSignal;
  readonly log: DriverLog;
  readonly onChange: () => void;
}

interface Running extends Omit<Probed, 'asked'> {
  asked: Asked;
  /** Null: no targets are configured. */
  prober: ReturnType<typeof startProber> | null;
  /** Null: no checks are configured. */
  checker: ReturnType<typeof startChecker> | null;
  readonly ending: AbortController;
  /** The probes are unanswered, or only by TCP. */
  isDoubtful: boolean;
}

export class Probing {
  readonly #spec: ProbingSpec;
  readonly #running = new Map<string, Running>();

  constructor(spec: ProbingSpec) {
    this.#spec = spec;
  }

  /** Starts and ends probers and checkers until there are those of each of `links`. */
  follow(links: readonly Probed[]): void {
    for (const [name, running] of this.#running) {
      if (links.some((link) => isSame(link, running))) continue;
      running.ending.abort();
      this.#running.delete(name);
    }
    for (const link of links) {
      const running = this.#running.get(link.name);
      if (!running) this.#running.set(link.name, this.#start(link));
      else running.asked = link.asked;
    }
  }

  /** Null: the link is not probed. */
  read(name: string): ProbeReading | null {
    const running = this.#running.get(name);
    if (!running) return null;
    const probe = running.prober?.read() ?? null;
    const isDoubtful = probe !== null && (probe.reachable === false || probe.method === 'tcp');
    // What the probes cannot decide, the checks can; and once probes are answered again, they hold the link offline no longer than needed.
    if (isDoubtful !== running.isDoubtful) running.checker?.hurry();
    running.isDoubtful = isDoubtful;
    return joined(probe, running.checker?.read() ?? null);
  }

  #start(link: Probed): Running {
    const { start, startChecker, tcp, timeout_ms, check_timeout_ms, log, onChange } = this.#spec;
    const ending = new AbortController();
    const signal = AbortSignal.any([this.#spec.signal, ending.signal]);
    const common = { device: link.name, signal, log, onChange };
    const running: Running = { ...link, prober: null, checker: null, ending, isDoubtful: false };
    const { ifindex, interval_ms, check_interval_ms } = link;
    if (this.#spec.hasTargets) {
      const targets = (): readonly ProbeTarget[] => running.asked.targets;
      running.prober = start({ ...common, ifindex, targets, tcp, interval_ms, timeout_ms });
    }
    if (this.#spec.hasChecks) {
      const ways = (): Asked => running.asked;
      const about = { ...common, ways, interval_ms: check_interval_ms };
      running.checker = startChecker({ ...about, timeout_ms: check_timeout_ms });
    }
    return running;
  }
}

function isSame(a: Probed, b: Probed): boolean {
  const isEqualPace = a.interval_ms === b.interval_ms && a.check_interval_ms === b.check_interval_ms;
  return a.name === b.name && a.ifindex === b.ifindex && isEqualPace;
}

/**
 * An expected answer is stronger evidence than an echo, both ways: checks that fail make a link unreachable whose probes are
 * answered, since a portal or an accelerator answers those itself; and a check that passed after the probes fell silent
 * shows that only the probes are filtered.
 */
export function joined(probe: ProbeReading | null, check: CheckReading | null): ProbeReading | null {
  if (!check) return probe;
  if (!probe) return byChecks(check);
  if (check.passed === false && probe.reachable !== false) {
    const failed = byChecks(check);
    return isOutdated(check, probe) ? { ...failed, decided_by: 'probes' } : failed;
  }
  if (probe.reachable !== false || !isNewer(check, probe)) return probe;
  return { ...byChecks(check), note: texts.only_checks_answer };
}

/** It passed in a round that began after the first probe without an answer: before that the link may have worked. */
function isNewer({ passed, passed_ms }: CheckReading, { silent_ms, since_ms }: ProbeReading): boolean {
  const silent_since_ms = silent_ms ?? since_ms ?? Number.NEGATIVE_INFINITY;
  return passed === true && passed_ms !== null && passed_ms > silent_since_ms;
}

/** It failed while no probe was answered either, and was not asked since: nothing has answered wrongly. */
function isOutdated({ asked_ms }: CheckReading, { since_ms }: ProbeReading): boolean {
  return asked_ms !== null && since_ms !== null && asked_ms < since_ms;
}

function byChecks({ passed, failing_since_ms, reason }: CheckReading): ProbeReading {
  return {
    ...no_reading,
    reachable: passed,
    since_ms: passed === false ? failing_since_ms : null,
    packet_loss_pct: passed === false ? 100 : null,
    reason: passed === true ? null : (reason ?? texts.first_probes),
    decided_by: 'checks',
  };
}
