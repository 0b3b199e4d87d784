/** MQTT packet identifiers (MQTT 5 section 2.2.1): an identifier in use is never issued again. */
const id_max = 65_535;

/** Has the methods that MQTT.js calls on a `messageIdProvider`. */
export class PacketIds {
  readonly #used = new Set<number>();
  #last = 0;

  /** The next free identifier; null while all 65,535 are in use. */
  allocate(): number | null {
    if (this.#used.size >= id_max) return null;
    do this.#last = this.#last >= id_max ? 1 : this.#last + 1;
    while (this.#used.has(this.#last));
    this.#used.add(this.#last);
    return this.#last;
  }

  getLastAllocated(): number | null {
    return this.#last === 0 ? null : this.#last;
  }

  register(id: number): boolean {
    if (this.#used.has(id)) return false;
    this.#used.add(id);
    return true;
  }

  deallocate(id: number): void {
    this.#used.delete(id);
  }

  clear(): void {
    this.#used.clear();
  }
}
