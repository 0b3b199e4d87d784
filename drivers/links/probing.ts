/** Runs one prober for each present link; starts a new one when the interface is replaced. */
import type { DriverLog } from '../../src/driver/driver.ts';
import type { Prober, ProbeReading, ProbeTarget, StartProber } from './probe/api.ts';

export interface Probed {
  readonly name: string;
  readonly ifindex: number;
  readonly interval_ms: number;
}

interface ProbingSpec {
  readonly start: StartProber;
  readonly targets: readonly ProbeTarget[];
  readonly timeout_ms: number;
  readonly signal: AbortSignal;
  readonly log: DriverLog;
  readonly onChange: () => void;
}

interface Running extends Probed {
  readonly prober: Prober;
  readonly ending: AbortController;
}

export class Probing {
  readonly #spec: ProbingSpec;
  readonly #running = new Map<string, Running>();

  constructor(spec: ProbingSpec) {
    this.#spec = spec;
  }

  /** Starts and ends probers until there is one for each of `links`. */
  follow(links: readonly Probed[]): void {
    if (this.#spec.targets.length === 0) return;
    for (const [name, running] of this.#running) {
      if (links.some((link) => isSame(link, running))) continue;
      running.ending.abort();
      this.#running.delete(name);
    }
    for (const link of links) {
      if (!this.#running.has(link.name)) this.#running.set(link.name, this.#start(link));
    }
  }

  /** Null: the link is not probed. */
  read(name: string): ProbeReading | null {
    return this.#running.get(name)?.prober.read() ?? null;
  }

  #start(link: Probed): Running {
    const { start, targets, timeout_ms, signal, log, onChange } = this.#spec;
    const ending = new AbortController();
    const prober = start({
      device: link.name,
      ifindex: link.ifindex,
      targets,
      interval_ms: link.interval_ms,
      timeout_ms,
      signal: AbortSignal.any([signal, ending.signal]),
      log,
      onChange,
    });
    return { ...link, prober, ending };
  }
}

function isSame(a: Probed, b: Probed): boolean {
  return a.name === b.name && a.ifindex === b.ifindex && a.interval_ms === b.interval_ms;
}
