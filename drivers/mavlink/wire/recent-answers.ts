/** Recognises an answer that was received before: a router, or two ways through a mesh, may deliver it twice. */

/** Longer than any way. A sequence number returns sooner, but rarely with the same answer. */
const remembered_ms = 10_000;
const remembered_max = 32;

export class RecentAnswers {
  readonly #seen: { readonly fingerprint: number; readonly at_ms: number }[] = [];

  /** `now_ms` is monotonic. */
  isNew(fingerprint: number, now_ms: number): boolean {
    const isKnown = this.#seen.some(
      (each) => each.fingerprint === fingerprint && now_ms - each.at_ms < remembered_ms,
    );
    if (isKnown) return false;
    this.#seen.push({ fingerprint, at_ms: now_ms });
    if (this.#seen.length > remembered_max) this.#seen.shift();
    return true;
  }
}
