/**
 * Binds devices to entries of the configuration at the first contact, and keeps the binding over restarts: a device
 * reports its identity without proof, so another one could take its place by claiming it.
 */
import { z } from 'zod';
import type { DriverLog } from './driver.ts';
import { texts } from './texts.ts';

/** An entry of the configuration. */
export interface BoundEntry {
  readonly name: string;
  /** Address of the device, such as `10.0.0.5:80`. */
  readonly place: string;
}

export interface BindingsParts {
  /** All configured entries; bindings of others are removed. */
  readonly entries: readonly BoundEntry[];
  /** The text that `save` received last; undefined when there is none. */
  readonly saved: string | undefined;
  /** Stores the text; after a failed disk write the bindings are lost at the next start only. */
  readonly save: (text: string) => Promise<void>;
  readonly log: DriverLog;
}

const bindings_max = 256;
/** Refused claims that are logged one by one. */
const alarms_max = 32;
const binding = z.object({ name: z.string(), place: z.string(), asset_key: z.string() });
const bindingList = z.array(binding).max(bindings_max);
type Binding = z.output<typeof binding>;

export class IdentityBindings {
  readonly #parts: BindingsParts;
  #bindings: readonly Binding[];
  readonly #alarmed = new Set<string>();
  #saving: Promise<void> = Promise.resolve();

  constructor(parts: BindingsParts) {
    this.#parts = parts;
    const earlier = read(parts.saved);
    this.#bindings = earlier.filter((bound) => parts.entries.some((entry) => isOf(bound, entry)));
  }

  /** These entries are configured now; bindings of others are removed. */
  keep(entries: readonly BoundEntry[]): void {
    const kept = this.#bindings.filter((bound) => entries.some((entry) => isOf(bound, entry)));
    if (kept.length === this.#bindings.length) return;
    this.#bindings = kept;
    this.#save();
  }

  /** Returns undefined when the entry may serve the device with this key, else why not and the remedy. Logs each claim once. */
  claim(entry: BoundEntry, asset_key: string): string | undefined {
    const owner = this.#bindings.find((bound) => bound.asset_key === asset_key);
    const own = this.#bindings.find((bound) => isOf(bound, entry));
    if (owner && owner === own) return undefined;
    if (owner) {
      return this.#alarm(entry, asset_key, texts.same_device(owner.name, asset_key));
    }
    if (own) {
      return this.#alarm(entry, asset_key, texts.other_device(asset_key, own.asset_key));
    }
    if (this.#bindings.length < bindings_max) this.#bind({ ...entry, asset_key });
    return undefined;
  }

  /** The key of the device that the entry is bound to; undefined before the first contact. */
  keyOf(entry: BoundEntry): string | undefined {
    return this.#bindings.find((bound) => isOf(bound, entry))?.asset_key;
  }

  /** Whether the key is bound to another entry than this one. */
  isOthers(entry: BoundEntry, asset_key: string): boolean {
    return this.#bindings.some((bound) => bound.asset_key === asset_key && !isOf(bound, entry));
  }

  /** Resolves when what was bound is stored, or was refused; a driver awaits it before it ends. */
  async saved(): Promise<void> {
    return this.#saving;
  }

  #bind({ name, place, asset_key }: Binding): void {
    this.#bindings = [...this.#bindings, { name, place, asset_key }];
    this.#save();
  }

  #save(): void {
    // Serialized: an earlier list must not overwrite a later one.
    this.#saving = this.#saving
      .then(async () => this.#parts.save(JSON.stringify(this.#bindings)))
      .catch(() => undefined);
  }

  #alarm({ name }: BoundEntry, asset_key: string, reason: string): string {
    const claim = `${name} ${asset_key}`;
    if (!this.#alarmed.has(claim) && this.#alarmed.size < alarms_max) {
      this.#alarmed.add(claim);
      this.#parts.log.error({ name, asset_key, reason }, texts.identity_claimed);
    }
    return reason;
  }
}

function isOf(bound: Binding, { name, place }: BoundEntry): boolean {
  return bound.name === name && bound.place === place;
}

function read(text: string | undefined): readonly Binding[] {
  try {
    return bindingList.safeParse(JSON.parse(text ?? '[]')).data ?? [];
  } catch {
    return [];
  }
}
