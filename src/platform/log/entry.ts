/** Formats a line of the log as a sentence: subject, event, duration, cause, and further facts. */

import { printable } from '../foreign-text.ts';

export type Level = 'debug' | 'info' | 'warn' | 'error' | 'fatal';

export interface LogEntry {
  readonly time: string;
  readonly level: Level;
  readonly sentence: string;
  readonly facts: ReadonlyMap<string, unknown>;
}

/** From the least to the most important. */
export const levels = ['debug', 'info', 'warn', 'error', 'fatal'] as const satisfies readonly Level[];

/** Facts that name who or what a line is of, the driver or part of the program aside; the first one counts. */
export const subject_keys = ['asset_key', 'asset', 'camera', 'radio', 'host', 'link', 'asset_id'] as const;

export function isLevel(text: unknown): text is Level {
  return levels.some((level) => level === text);
}

/** The entry of one line of JSON, or undefined for what is none. */
export function readEntry(line: string): LogEntry | undefined {
  const entry = parsed(line);
  if (typeof entry !== 'object' || entry === null) return undefined;
  const facts = new Map<string, unknown>(
    Object.entries(entry).map(([key, value]) => [key, visible(key, value)]),
  );
  const take = (key: string): unknown => {
    const value = facts.get(key);
    facts.delete(key);
    return value;
  };
  const [time, level, sentence] = [take('time'), take('level'), take('msg')];
  return {
    time: typeof time === 'string' ? time : '',
    level: isLevel(level) ? level : 'info',
    sentence: typeof sentence === 'string' ? sentence : '',
    facts,
  };
}

/** What foreign text would hide, or do to a terminal, is shown instead; a stack has its lines. */
function visible(key: string, value: unknown): unknown {
  if (typeof value === 'string')
    return key === 'stack' ? value.split('\n').map(printable).join('\n') : printable(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item: unknown) => visible('', item));
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, visible(name, item)]));
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

/** The parts of a readable line. */
export interface Prose {
  /** `cameras gate`; empty for a line of the program as a whole. */
  readonly subject: string;
  /** `camera is back after 4 min` */
  readonly text: string;
  /** What is left: `port=554`. */
  readonly tail: readonly string[];
}

/** Some facts become part of the sentence; the others follow it as key=value. */
export function prose({ sentence, facts }: LogEntry): Prose {
  const left = new Map(facts);
  const take = (key: string): unknown => {
    const value = left.get(key);
    left.delete(key);
    return value;
  };
  const own = take('driver') ?? take('part');
  const key = subject_keys.find((name) => typeof left.get(name) === 'string');
  const named = key === undefined ? undefined : take(key);
  // A person knows an asset by its name; its key is for queries.
  const whom = key === 'asset_key' && typeof left.get('name') === 'string' ? take('name') : named;
  const subject = [own, whom].filter((word) => typeof word === 'string' && word !== '').join(' ');
  const text = woven(sentence, take);
  // The words of a suppressed line give its number.
  left.delete('suppressed');
  const news = Array.from(left).filter(([, value]) => !isInText(value, text));
  return { subject, text, tail: news.map(([name, value]) => `${name}=${factText(value)}`) };
}

/** Shorter words may stand in a sentence by chance. */
const text_chars_min = 4;

/** What is null is not known, and no news. */
function isInText(value: unknown, text: string): boolean {
  if (value === null) return true;
  return typeof value === 'string' && value.length >= text_chars_min && text.includes(value);
}

function woven(sentence: string, take: (key: string) => unknown): string {
  const after = durationText(take('down_s') ?? take('took_s'), 1);
  const err = take('err');
  const reason = take('reason') ?? err;
  const next = durationText(take('retry_ms'), 1_000);
  const up = durationText(take('up_s') ?? take('held_s'), 1);
  return [
    sentence,
    ...(after === undefined ? [] : [` after ${after}`]),
    ...(reason === undefined || reason === null ? [] : [` (${factText(reason, { quoted: false })})`]),
    ...(up === undefined ? [] : [`, up for ${up} before`]),
    ...(next === undefined ? [] : [`, next try in ${next}`]),
  ].join('');
}

function durationText(value: unknown, units_per_s: number): string | undefined {
  return typeof value === 'number' ? durationInWords(value / units_per_s) : undefined;
}

const [minute_s, hour_s, day_s] = [60, 3_600, 86_400];

/** `0.4 s`, `12 s`, `4 min`, `2 h 5 min`, `3 d 4 h` */
export function durationInWords(seconds: number): string {
  if (seconds < 10) return `${Math.round(seconds * 10) / 10} s`;
  if (seconds < 2 * minute_s) return `${Math.round(seconds)} s`;
  if (seconds < hour_s) return `${Math.round(seconds / minute_s)} min`;
  if (seconds < day_s) return pair(seconds, [hour_s, 'h'], [minute_s, 'min']);
  return pair(seconds, [day_s, 'd'], [hour_s, 'h']);
}

type Unit = readonly [seconds: number, name: string];

function pair(seconds: number, [large_s, large]: Unit, [small_s, small]: Unit): string {
  const whole = Math.floor(seconds / large_s);
  const rest = Math.floor((seconds % large_s) / small_s);
  return rest === 0 ? `${whole} ${large}` : `${whole} ${large} ${rest} ${small}`;
}

/** Text with spaces is quoted, so that the end of a value can be seen. */
export function factText(value: unknown, { quoted = true } = {}): string {
  if (typeof value === 'string') return quoted && /[\s"=]|^$/.test(value) ? JSON.stringify(value) : value;
  if (typeof value === 'object' && value !== null && 'message' in value)
    return factText(value.message, { quoted });
  return JSON.stringify(value) ?? String(value);
}
