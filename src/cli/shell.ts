/** What a subcommand sees of the process and the terminal, and how it writes tables and colours. */
import { styleText } from 'node:util';
import type { Ask } from './ask.ts';
import { isJournal } from '../platform/journal.ts';

interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
}

export interface Shell {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly out: Output;
  readonly err: Output;
  /** Undefined when nobody sits at a terminal. */
  readonly ask?: Ask;
  /** Aborts at SIGINT and SIGTERM. */
  readonly signal: AbortSignal;
  readonly onHangup: (listener: () => void) => void;
  /** Called with what nobody caught; the process ends afterwards. */
  readonly onCrash: (listener: (error: unknown) => void) => void;
}

/** Exit codes, after sysexits.h. */
export const exit = { ok: 0, failed: 1, usage: 64, unavailable: 69, config: 78 } as const;

export function say(shell: Shell, ...lines: readonly string[]): void {
  for (const line of lines) shell.out.write(`${line}\n`);
}

/** In the journal of systemd a complaint is an error, as sd-daemon(3) marks it. */
export function complain(shell: Shell, ...lines: readonly string[]): void {
  const mark = isJournal(2, shell.env['JOURNAL_STREAM']) ? '<3>' : '';
  for (const line of lines) shell.err.write(`${mark}${line}\n`);
}

export function sayJson(shell: Shell, value: unknown): void {
  say(shell, JSON.stringify(value, undefined, shell.out.isTTY ? 2 : undefined));
}

type Style = 'good' | 'warn' | 'bad' | 'dim' | 'bold';
export type Paint = (style: Style, text: string) => string;

const formats = { good: 'green', warn: 'yellow', bad: 'red', dim: 'gray', bold: 'bold' } as const;

/** Colours on a terminal that wants them (https://no-color.org), plain text elsewhere. */
export function painter({ env, out }: Pick<Shell, 'env' | 'out'>): Paint {
  const isColoured = out.isTTY === true && !env['NO_COLOR'] && env['TERM'] !== 'dumb';
  return (style, text) => (isColoured ? styleText(formats[style], text, { validateStream: false }) : text);
}

// oxlint-disable-next-line no-control-regex -- the colours that `painter` adds
const colours = /\u001B\[\d+m/g;

/** Columns as wide as their widest cell, two spaces between them, nothing after the last one. */
export function table(rows: readonly (readonly string[])[], indent = '  '): readonly string[] {
  const width = (cell: string): number => cell.replaceAll(colours, '').length;
  const widths: number[] = [];
  for (const row of rows) row.forEach((cell, at) => (widths[at] = Math.max(widths[at] ?? 0, width(cell))));
  return rows.map((row) =>
    `${indent}${row.map((cell, at) => cell + ' '.repeat((widths[at] ?? 0) - width(cell))).join('  ')}`.trimEnd(),
  );
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

/** Time of day on this machine, for a line on the screen. */
export function clockTime(iso: string): string {
  return new Date(iso).toLocaleTimeString('en-GB');
}
