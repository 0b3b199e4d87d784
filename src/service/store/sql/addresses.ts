/** The server in use of a PostgreSQL that several servers hold. The library takes a single host, so the choice is made here. */
import { addressesOf } from '../../../platform/host-list.ts';

/** All connections use the same server until it fails. */
export class Addresses {
  readonly #all: readonly string[];
  #at = 0;

  constructor(url: string) {
    this.#all = addressesOf(url);
  }

  get count(): number {
    return this.#all.length;
  }

  get current(): string {
    return this.#all[this.#at] ?? '';
  }

  /** Changes to the next server, unless another connection has done so meanwhile. */
  failed(address: string): void {
    if (address === this.current) this.#at = (this.#at + 1) % this.#all.length;
  }
}
