/** Which lines are written: the levels of the configuration, and over them what was asked for a limited time. */
import { texts } from '../texts.ts';
import { type Level, levels as order } from './entry.ts';

/** A level in effect. `name` is a driver instance or a part of the program; null: all without their own. */
export interface LevelView {
  readonly name: string | null;
  readonly level: Level;
  /** UTC, milliseconds: until then in place of what the configuration specifies; null: for good. */
  readonly until_ms: number | null;
}

export interface BaseLevels {
  readonly level: Level;
  /** By name of the driver instance. */
  readonly drivers?: Readonly<Record<string, Level>> | undefined;
}

interface Passing {
  readonly level: Level;
  readonly until_ms: number;
  readonly timer: NodeJS.Timeout;
}

export const override_max_ms = 24 * 3_600_000;
/** Names that may have a passing level at a time. */
export const overrides_max = 64;

/** The key of everything without its own level. */
const everything = '';

export class LogLevels {
  #base: BaseLevels;
  readonly #passing = new Map<string, Passing>();
  readonly #onExpired: (name: string | null, level: Level) => void;

  /** `onExpired` receives the level that applies again. */
  constructor(base: BaseLevels, onExpired: (name: string | null, level: Level) => void) {
    this.#base = base;
    this.#onExpired = onExpired;
  }

  /** Whether a line of this level and owner is written. */
  allows(level: Level, owner: string | undefined): boolean {
    return order.indexOf(level) >= order.indexOf(this.of(owner));
  }

  of(owner: string | undefined): Level {
    const { level, drivers = {} } = this.#base;
    const own = owner === undefined ? undefined : this.#ownLevel(owner, drivers);
    return own ?? this.#passing.get(everything)?.level ?? level;
  }

  /** What the configuration specifies; passing levels stay. */
  configure(base: BaseLevels): void {
    this.#base = base;
  }

  /** `for_ms` is held to `override_max_ms`. Throws `RangeError` when too many names have a passing level. */
  override(name: string | null, level: Level, for_ms: number): void {
    const key = name ?? everything;
    if (!this.#passing.has(key) && this.#passing.size >= overrides_max)
      throw new RangeError(texts.too_many_levels(overrides_max));
    this.reset(name);
    const ms = Math.min(for_ms, override_max_ms);
    const timer = setTimeout(() => {
      this.#passing.delete(key);
      this.#onExpired(name, this.of(name ?? undefined));
    }, ms);
    timer.unref();
    this.#passing.set(key, { level, until_ms: Date.now() + ms, timer });
  }

  /** Resets to what the configuration specifies. */
  reset(name: string | null): void {
    clearTimeout(this.#passing.get(name ?? everything)?.timer);
    this.#passing.delete(name ?? everything);
  }

  /** Ends every passing level, and its timer. */
  close(): void {
    for (const { timer } of this.#passing.values()) clearTimeout(timer);
    this.#passing.clear();
  }

  /** The general level first, then every name that has its own. */
  view(): readonly LevelView[] {
    const { drivers = {} } = this.#base;
    const names = new Set([...Object.keys(drivers), ...this.#passing.keys()]);
    names.delete(everything);
    const viewOf = (name: string | null): LevelView => ({
      name,
      level: this.of(name ?? undefined),
      until_ms: this.#passing.get(name ?? everything)?.until_ms ?? null,
    });
    return [viewOf(null), ...[...names].sort().map(viewOf)];
  }

  #ownLevel(owner: string, drivers: Readonly<Record<string, Level>>): Level | undefined {
    return this.#passing.get(owner)?.level ?? (Object.hasOwn(drivers, owner) ? drivers[owner] : undefined);
  }
}
