/** Which probe targets are silent while others answer, as the log has reported it. */
export class SilentTargets {
  #known: ReadonlySet<string> = new Set();

  /** What changed: targets that are silent now, and former silent ones that answered. While none answers, nothing is known of any. */
  changes(silent: readonly string[], answering: ReadonlySet<string>): Changes {
    const fell_silent = silent.filter((target) => !this.#known.has(target));
    const answered = [...this.#known].filter((target) => answering.has(target));
    this.#known = new Set([...this.#known, ...fell_silent].filter((target) => !answering.has(target)));
    return { fell_silent, answered };
  }
}

interface Changes {
  readonly fell_silent: readonly string[];
  readonly answered: readonly string[];
}
