/** Tells those who watch a kit what was stored. */
import type { Change } from './store/store.ts';

type Watcher = (changes: readonly Change[]) => void;

export class Changes {
  readonly #watchers = new Map<string, Set<Watcher>>();

  /** Calls `watcher` with every change of this kit until the signal aborts. It must not throw. */
  watch(kit_id: string, watcher: Watcher, signal: AbortSignal): void {
    if (signal.aborted) return;
    const watchers = this.#watchers.get(kit_id) ?? new Set();
    this.#watchers.set(kit_id, watchers);
    watchers.add(watcher);
    signal.addEventListener(
      'abort',
      () => {
        watchers.delete(watcher);
        if (watchers.size === 0) this.#watchers.delete(kit_id);
      },
      { once: true },
    );
  }

  /** The kits that somebody watches. */
  watched(): readonly string[] {
    return [...this.#watchers.keys()];
  }

  isWatched(kit_id: string): boolean {
    return this.#watchers.has(kit_id);
  }

  tell(changes: readonly Change[]): void {
    if (this.#watchers.size === 0) return;
    for (const [kit_id, ofKit] of Map.groupBy(changes, (change) => change.kit_id)) {
      for (const watcher of this.#watchers.get(kit_id) ?? []) watcher(ofKit);
    }
  }
}
