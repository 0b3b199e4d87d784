/** Distributes stored changes to the subscribers of a kit or of all kits. */
import type { Change } from './stored/stored.ts';

type Subscriber = (changes: readonly Change[]) => void;

export class Changes {
  readonly #subscribers = new Map<string, Set<Subscriber>>();
  readonly #ofAll = new Set<Subscriber>();

  /** Calls `subscriber` with every change of this kit until the signal aborts. It must not throw. */
  subscribe(kit_id: string, subscriber: Subscriber, signal: AbortSignal): void {
    if (signal.aborted) return;
    const subscribers = this.#subscribers.get(kit_id) ?? new Set();
    this.#subscribers.set(kit_id, subscribers);
    subscribers.add(subscriber);
    signal.addEventListener(
      'abort',
      () => {
        subscribers.delete(subscriber);
        if (subscribers.size === 0) this.#subscribers.delete(kit_id);
      },
      { once: true },
    );
  }

  /** Calls `subscriber` with the changes of all kits until the signal aborts. It must not throw. */
  subscribeAll(subscriber: Subscriber, signal: AbortSignal): void {
    if (signal.aborted) return;
    this.#ofAll.add(subscriber);
    signal.addEventListener('abort', () => this.#ofAll.delete(subscriber), { once: true });
  }

  /** Whether a subscriber gets the changes of all kits. */
  get hasFleetSubscribers(): boolean {
    return this.#ofAll.size > 0;
  }

  /** Returns the kits with their own subscribers. */
  subscribedKits(): readonly string[] {
    return [...this.#subscribers.keys()];
  }

  isSubscribed(kit_id: string): boolean {
    return this.#ofAll.size > 0 || this.#subscribers.has(kit_id);
  }

  publish(changes: readonly Change[]): void {
    for (const subscriber of this.#ofAll) subscriber(changes);
    if (this.#subscribers.size === 0) return;
    for (const [kit_id, ofKit] of Map.groupBy(changes, (change) => change.kit_id)) {
      for (const subscriber of this.#subscribers.get(kit_id) ?? []) subscriber(ofKit);
    }
  }
}
