/** The process and the terminal as subcommands use them, with tables and colours. */
import { styleText } from 'node:util';
import type { Ask } from './ask.ts';
import { isJournal } from '../../platform/systemd/journal.ts';
import { printable, printableJson } from '../../platform/foreign-text.ts';
import { cut, padTo, widthOf } from './width.ts';

export interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
}

export interface Shell {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly out: Output;
  readonly err: Output;
  /** Undefined without an interactive terminal. */
  readonly ask?: Ask;
  /** Aborts at SIGINT and SIGTERM. */
  readonly signal: AbortSignal;
  readonly onHangup: (listener: () => void) => void;
  /** Called with an uncaught error; the process exits afterwards. */
  readonly onCrash: (listener: (error: unknown) => void) => void;
}

/** Exit codes, after sysexits.h. */
export const exit = { ok: 0, failed: 1, usage: 64, unavailable: 69, config: 78 } as const;

/** The action of a subcommand: calls what `load` returns with the arguments, the options and the shell; it answers the exit code. */
export type Act = (
  load: (options: never) => Promise<(...args: never[]) => Promise<number>>,
) => (...args: readonly unknown[]) => Promise<void>;

/** Writes each of them as one line: a line break in a text of others would forge another. */
export function say(shell: Shell, ...lines: readonly string[]): void {
  for (const line of lines) shell.out.write(`${oneLine(line)}\n`);
}

/** Writes errors, each as one line without colours; in the systemd journal with the priority prefix of sd-daemon(3). */
export function complain(shell: Shell, ...lines: readonly string[]): void {
  const mark = isJournal(2, shell.env['JOURNAL_STREAM']) ? '<3>' : '';
  for (const line of lines) shell.err.write(`${mark}${printable(line)}\n`);
}

export function printJson(shell: Shell, value: unknown): void {
  shell.out.write(`${printableJson(JSON.stringify(value, undefined, shell.out.isTTY ? 2 : undefined))}\n`);
}

/** One line of text without control sequences, except the colours of `painter`. */
export function oneLine(text: string): string {
  return text
    .split(colour)
    .map((part, at) => (at % 2 === 0 ? printable(part) : part))
    .join('');
}

type Style = 'good' | 'warn' | 'bad' | 'dim' | 'bold' | 'name';
export type Paint = (style: Style, text: string) => string;

const formats = {
  good: 'green',
  warn: 'yellow',
  bad: 'red',
  dim: 'gray',
  bold: 'bold',
  name: 'cyan',
} as const;

/** Colours on a terminal that supports them (https://no-color.org), plain text elsewhere. */
export function painter({ env, out }: Pick<Shell, 'env' | 'out'>): Paint {
  const isColoured = out.isTTY === true && !env['NO_COLOR'] && env['TERM'] !== 'dumb';
  return (style, text) => (isColoured ? styleText(formats[style], text, { validateStream: false }) : text);
}

const escape = '\u001B';
/** The control codes that start and end `formats`. */
const colour = new RegExp(`(${escape}\\[(?:0|1|22|31|32|33|36|39|90)m)`, 'u');

/** Columns as wide as their widest cell, two spaces between them, nothing after the last one; each row cut to `columns`. */
export function table(
  rows: readonly (readonly string[])[],
  indent = '  ',
  columns?: number,
): readonly string[] {
  const widths: number[] = [];
  const shown = rows.map((row) => row.map(oneLine));
  for (const row of shown) row.forEach((cell, at) => (widths[at] = Math.max(widths[at] ?? 0, widthOf(cell))));
  return shown.map((row) =>
    cut(`${indent}${row.map((cell, at) => padTo(cell, widths[at] ?? 0)).join('  ')}`.trimEnd(), columns),
  );
}

/** The width of the terminal; undefined without a terminal or with an unknown width: then lines are not cut. */
export function columnsOf({ isTTY, columns }: Output): number | undefined {
  return isTTY === true && columns ? columns : undefined;
}

/** `3d 4h`, `2h 5m`, `12s` */
export function duration(seconds: number): string {
  const s = Math.round(seconds);
  if (s < 60) return `${s}s`;
  if (s < 3_600) return `${Math.floor(s / 60)}m ${s % 60}s`;
  if (s < 86_400) return `${Math.floor(s / 3_600)}h ${Math.floor((s % 3_600) / 60)}m`;
  return `${Math.floor(s / 86_400)}d ${Math.floor((s % 86_400) / 3_600)}h`;
}

/** `1.2 MB`, in units of 1000. */
export function size(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  const step = bytes < 1_000 ? 0 : Math.min(Math.floor(Math.log10(bytes) / 3), units.length - 1);
  const value = bytes / 1_000 ** step;
  return `${step === 0 ? value : value.toFixed(1)} ${units[step]}`;
}
