/** Faults of the daemon's own parts that last: each is one sentence until the part has recovered. */

export type ConditionKind = 'configuration' | 'service' | 'metrics';

export class Conditions {
  readonly #present = new Map<ConditionKind, string>();

  /** What is wrong and what to do, until `clear`. */
  note(kind: ConditionKind, sentence: string): void {
    this.#present.set(kind, sentence);
  }

  clear(kind: ConditionKind): void {
    this.#present.delete(kind);
  }

  sentences(): readonly string[] {
    return [...this.#present.values()];
  }
}
