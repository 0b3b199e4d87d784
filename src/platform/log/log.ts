/** The log: JSON lines for machines, readable ones on a terminal; without secrets, and without endless repeats. */
import { styleText } from 'node:util';
import { type Logger, pino } from 'pino';
import { printableJson } from '../foreign-text.ts';
import { localTime } from '../local-time.ts';
import { texts } from '../texts.ts';
import { type Level, levels as order, prose, readEntry, subject_keys } from './entry.ts';
import { of_owner_max, of_subject_max, Repeats, repeats_max, window_ms } from './repeats.ts';
import { harmlessFacts, withoutSecrets } from './secrets.ts';

/** A level in effect. `name` is a driver instance or a part of the program; null: all without their own. */
interface LevelView {
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

const lines_max = 2_000;
const chars_max = 500_000;
const line_chars_max = 4_000;

export class LogRing {
  readonly #lines: string[] = [];
  #chars = 0;
  #left_out = 0;

  push(line: string): void {
    const kept = line.trimEnd().slice(0, line_chars_max);
    this.#lines.push(kept);
    this.#chars += kept.length;
    while (this.#lines.length > lines_max || this.#chars > chars_max) {
      this.#chars -= this.#lines.shift()?.length ?? 0;
      this.#left_out += 1;
    }
  }

  /** Oldest first; the first one tells how many lines before it are gone. */
  lines(): readonly string[] {
    if (this.#left_out === 0) return [...this.#lines];
    const gone = { level: 'info', msg: texts.lines_left_out, lines: this.#left_out };
    return [JSON.stringify(gone), ...this.#lines];
  }
}

export type { Level } from './entry.ts';

/** Facts first, then a fixed sentence. */
export interface Log {
  debug(facts: object, sentence: string): void;
  info(facts: object, sentence: string): void;
  warn(facts: object, sentence: string): void;
  error(facts: object, sentence: string): void;
  fatal(facts: object, sentence: string): void;
  /** A log whose lines carry `facts`. One with a `driver` or `part` has the level of that name. */
  child(facts: Readonly<Record<string, string>>): Log;
}

export type LogRoot = ReturnType<typeof createLog>;

export interface LogOptions extends BaseLevels {
  /** Takes one line of JSON at a time, or of text if `readable`. Must not block. */
  readonly out: { write(line: string): unknown };
  /** Coloured lines for a person instead of JSON. */
  readonly readable: boolean;
}

type Write = (level: Level, facts: object, sentence: string) => void;

export function createLog({ out, readable, ...base }: LogOptions) {
  const ring = new LogRing();
  const root = pino(
    {
      level: 'debug',
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: (facts) => harmlessFacts(facts) },
    },
    {
      write: (line: string) => {
        const json = printableJson(line);
        ring.push(json);
        out.write(readable ? readableLine(json) : json);
      },
    },
  );
  const levels: LogLevels = new LogLevels(base, (name, level) =>
    ownerOf(name).info({}, texts.level_reset(level)),
  );
  const repeats = new Repeats(window_ms);
  const bind = (logger: Logger, owner: string | undefined, who: string): Log =>
    logOf(
      (level, facts, sentence) => {
        if (!levels.allows(level, owner)) return;
        const write: Write = (level, facts, sentence) => logger[level](facts, withoutSecrets(sentence));
        if (isNeverRepeated(level) || isNews({ repeats, who, write }, level, facts, sentence))
          write(level, facts, sentence);
      },
      (facts) => {
        if (facts['driver'] !== undefined) drivers.add(facts['driver']);
        const name = facts['driver'] ?? facts['part'] ?? owner;
        return bind(logger.child(harmlessFacts(facts)), name, `${who} ${Object.values(facts).join(' ')}`);
      },
    );
  const log = bind(root, undefined, '');
  /** Names of instances that have logged something, or may. */
  const drivers = new Set<string>();
  const ownerOf = (name: string | null): Log =>
    name === null ? log : log.child(drivers.has(name) ? { driver: name } : { part: name });
  return {
    ...log,
    /** The log of a driver or part that has its own level; null: of the program as a whole. */
    ownerOf,
    /** What the configuration specifies; levels that were set for a time stay until their time is over. */
    configure: levels.configure.bind(levels),
    /** Sets the level of one driver or part (null: all without their own) for a time, at most 24 h. */
    override: levels.override.bind(levels),
    /** Resets to what the configuration specifies. */
    reset: levels.reset.bind(levels),
    levels: levels.view.bind(levels),
    /** The last lines as JSON, without secrets, oldest first. */
    recent: ring.lines.bind(ring),
    /** Logs the counts of suppressed repeats, and ends every timer. */
    close: (): void => {
      repeats.flush();
      levels.close();
    },
  };
}

function logOf(write: Write, child: Log['child']): Log {
  return {
    debug: (facts, sentence) => write('debug', facts, sentence),
    info: (facts, sentence) => write('info', facts, sentence),
    warn: (facts, sentence) => write('warn', facts, sentence),
    error: (facts, sentence) => write('error', facts, sentence),
    fatal: (facts, sentence) => write('fatal', facts, sentence),
    child,
  };
}

/** Debug lines were requested as a whole, and a crash must always be logged. */
function isNeverRepeated(level: Level): boolean {
  return level === 'debug' || level === 'fatal';
}

interface Repeating {
  readonly repeats: Repeats;
  /** The owner of the log. */
  readonly who: string;
  readonly write: Write;
}

/** Facts that make two lines with the same sentence different ones; reasons and figures do not. */
const other_identifying_keys = [
  'name',
  'feed',
  'topic',
  'channel',
  'task_id',
  'text',
  'event',
  'command',
  'file',
] as const;
/** Of a fact, so much makes a difference. */
const identifying_chars_max = 200;

/** Limits a device with ever new texts by its subject, and a device with ever new subjects by its driver. */
function isNews({ repeats, who, write }: Repeating, level: Level, facts: object, sentence: string): boolean {
  const subject = identifyingFacts(facts, [...subject_keys, 'kit_id']);
  const all = [...subject, ...identifyingFacts(facts, other_identifying_keys)];
  const summarize =
    (of: readonly IdentifyingFact[], words: string) =>
    (suppressed: number, within_ms: number): void => {
      const window_s = Math.max(1, Math.round(within_ms / 1_000));
      const line = texts.lines_suppressed(words, suppressed, window_s);
      write(level, { ...Object.fromEntries(of), suppressed }, line);
    };
  return repeats.admits([
    {
      text: JSON.stringify([level, who, sentence, ...all]),
      max: repeats_max,
      summarize: summarize(all, sentence),
    },
    {
      text: JSON.stringify(['subject', level, who, sentence, ...subject]),
      max: of_subject_max,
      summarize: summarize(subject, sentence),
    },
    {
      text: JSON.stringify(['owner', level, who]),
      max: of_owner_max,
      summarize: summarize([], texts.too_many_lines),
    },
  ]);
}

type IdentifyingFact = readonly [string, string | number];

function identifyingFacts(facts: object, keys: readonly string[]): readonly IdentifyingFact[] {
  const of = new Map<string, unknown>(Object.entries(facts));
  return keys.flatMap((key): readonly IdentifyingFact[] => {
    const value = of.get(key);
    if (typeof value === 'number') return [[key, value]];
    return typeof value === 'string' ? [[key, value.slice(0, identifying_chars_max)]] : [];
  });
}

const colours = { debug: 'gray', info: 'green', warn: 'yellow', error: 'red', fatal: 'red' } as const;

/** `12:30:01  warn   camera-1  device is unavailable (timed out), next try in 2 s  port=554` */
function readableLine(line: string): string {
  const entry = readEntry(line);
  if (!entry) return line;
  const { subject, text, tail } = prose(entry);
  const paint = (colour: 'gray' | 'cyan' | (typeof colours)[Level], words: string): string =>
    styleText(colour, words, { validateStream: false });
  return `${[
    paint('gray', localTime(entry.time)),
    paint(colours[entry.level], entry.level.padEnd(5)),
    ...(subject ? [paint('cyan', subject)] : []),
    text,
    ...tail.map((fact) => paint('gray', fact)),
  ].join('  ')}\n`;
}
