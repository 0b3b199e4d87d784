/**
 * Writes the log to systemd's journal in its native protocol, so that a line has fields (`journalctl DRIVER=mavlink`)
 * and still reads like prose. See "Native Journal Protocol" of systemd. A journal that does not take lines costs lines,
 * which are counted and logged, and never time.
 */
import { fstatSync } from 'node:fs';
import { type Level, type LogEntry, prose, readEntry } from '../log/entry.ts';
import { texts } from '../texts.ts';
import { type DatagramSender, openDatagramSender, type SendResult } from './unix-datagram.ts';

export const journal_socket = '/run/systemd/journal/socket';

/** Far below the 208 KiB that one datagram may have by default; journald would take more through a memory file only. */
const message_chars_max = 32_768;
const field_chars_max = 4_096;
const fields_max = 48;

/** As in syslog.h. */
const priorities: Readonly<Record<Level, number>> = { debug: 7, info: 6, warn: 4, error: 3, fatal: 2 };

/** Whether this descriptor (2: standard error) leads to the journal, as `JOURNAL_STREAM` of systemd.exec specifies. */
export function isJournal(fd: number, journal_stream: string | undefined): boolean {
  if (!journal_stream) return false;
  try {
    const { dev, ino } = fstatSync(fd, { bigint: true });
    return journal_stream === `${dev}:${ino}`;
  } catch {
    return false;
  }
}

/** Whose lines these are. */
export interface JournalSource {
  /** By which `journalctl -t` finds them. */
  readonly identifier: string;
  /** That all lines are about; undefined: the kit that a line names. */
  readonly kit_id?: string;
}

export interface JournalOptions extends JournalSource {
  /** Takes the line as text where no journal listens: `prefixedLine` of it, for standard error. */
  readonly instead: (text: string) => unknown;
  /** `journal_socket` when left out. */
  readonly socket?: string;
}

export interface JournalOut {
  /** Takes one line of JSON. */
  readonly write: (line: string) => void;
  readonly close: () => void;
}

/** Never rejects: where no datagram can be sent at all, every line goes the other way. */
export async function openJournal(options: JournalOptions): Promise<JournalOut> {
  const { instead, socket = journal_socket } = options;
  const sender = await openDatagramSender(socket).catch(() => undefined);
  if (!sender) return { write: (line) => void instead(prefixedLine(line)), close: () => undefined };
  let lost: { readonly since_ms: number; lines: number } | undefined;
  return {
    write(line) {
      const entry = readEntry(line);
      if (!entry) return;
      if (lost && sendEntry(sender, lossEntry(lost), options) === 'ok') lost = undefined;
      const result = lost ? 'EAGAIN' : sendEntry(sender, entry, options);
      if (result === 'ok') return;
      if (result === 'EAGAIN') {
        lost ??= { since_ms: performance.now(), lines: 0 };
        lost.lines += 1;
      } else {
        // No receiver: the journal is stopped or restarting.
        instead(prefixedLine(line));
      }
    },
    close: () => sender.close(),
  };
}

function sendEntry(sender: DatagramSender, entry: LogEntry, source: JournalSource): SendResult {
  const result = sender.send(journalDatagram(entry, source));
  // What is too large for this machine's limits is still worth its first words.
  if (result !== 'EMSGSIZE') return result;
  return sender.send(journalDatagram({ ...entry, facts: new Map() }, source, field_chars_max));
}

function lossEntry({ since_ms, lines }: { readonly since_ms: number; readonly lines: number }): LogEntry {
  const seconds = Math.max(1, Math.round((performance.now() - since_ms) / 1_000));
  const sentence = texts.journal_slow(lines, seconds);
  return { time: '', level: 'warn', sentence, facts: new Map([['lines', lines]]) };
}

/** The datagram of one entry: MESSAGE for people, the facts as fields for queries. */
export function journalDatagram(
  entry: LogEntry,
  { identifier, kit_id }: JournalSource,
  chars_max = message_chars_max,
): Buffer {
  const about = kit_id ?? entry.facts.get('kit_id');
  const fields: (readonly [string, string])[] = [
    ['PRIORITY', String(priorities[entry.level])],
    ['SYSLOG_IDENTIFIER', identifier],
    ...(typeof about === 'string' ? [['KIT', about] as const] : []),
    ...knownFields(entry.facts),
    ...otherFields(entry.facts),
  ];
  // The one kit of all lines, and the task of a line, are fields, which need not be read.
  const message = journalMessage(entry, kit_id === undefined ? ['task_id'] : ['kit_id', 'task_id']);
  const fitting = message.length > chars_max ? `${message.slice(0, chars_max)}...` : message;
  const limited = fields
    .slice(0, fields_max)
    .map(([name, value]) => encodeField(name, value.slice(0, field_chars_max)));
  return Buffer.concat([encodeField('MESSAGE', fitting), ...limited]);
}

/** `cameras gate: camera is back after 4 min  port=554`; a crash shows where it happened. `fields`: facts that stand elsewhere. */
function journalMessage(entry: LogEntry, fields: readonly string[] = []): string {
  const facts = new Map(entry.facts);
  for (const name of fields) facts.delete(name);
  const { subject, text, tail } = prose({ ...entry, facts });
  const line = [subject ? `${subject}: ${text}` : text, ...tail].join('  ');
  const stack = entry.level === 'fatal' ? errorPart(entry.facts, 'stack') : undefined;
  return stack === undefined ? line : `${line}\n${stack}`;
}

/** The fields that a technician filters by. */
function knownFields(facts: ReadonlyMap<string, unknown>): (readonly [string, string])[] {
  const textOf = (...names: readonly string[]): string | undefined =>
    names.map((name) => facts.get(name)).find((value) => typeof value === 'string');
  const known: readonly (readonly [string, string | undefined])[] = [
    ['DRIVER', textOf('driver')],
    ['PART', textOf('part')],
    ...assetNames(facts).map((name) => ['ASSET', name] as const),
    ['TASK', textOf('task_id')],
    ['CODE', codeOf(facts)],
    ['STACK', errorPart(facts, 'stack')],
  ];
  return known.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]));
}

/** An asset is found by its key and by its name: a field may have several values. */
function assetNames(facts: ReadonlyMap<string, unknown>): readonly string[] {
  const names = facts.has('asset_key') ? [...asset_keys, 'name'] : asset_keys;
  const values = names.map((name) => facts.get(name));
  return [...new Set(values.filter((value) => typeof value === 'string'))];
}
const asset_keys = ['asset_key', 'asset', 'camera', 'radio', 'host', 'asset_id'] as const;

function codeOf(facts: ReadonlyMap<string, unknown>): string | undefined {
  const code = facts.get('code') ?? errorPart(facts, 'code');
  return typeof code === 'string' || typeof code === 'number' ? String(code) : undefined;
}

function errorPart(facts: ReadonlyMap<string, unknown>, name: 'stack' | 'code'): string | undefined {
  const err = facts.get('err');
  if (typeof err !== 'object' || err === null) return undefined;
  const value: unknown = Reflect.get(err, name);
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
}

/** Every other plain fact under its own name: `FACT_RETRY_MS=1000`. */
function otherFields(facts: ReadonlyMap<string, unknown>): (readonly [string, string])[] {
  return Array.from(facts).flatMap(([name, value]) =>
    isPlain(value) && !own_fields.has(name)
      ? [[`FACT_${name.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_')}`.slice(0, 64), String(value)]]
      : [],
  );
}

/** They are fields already. */
const own_fields: ReadonlySet<string> = new Set(['driver', 'part', 'task_id', 'code', 'kit_id']);

function isPlain(value: unknown): value is string | number | boolean {
  return ['string', 'number', 'boolean'].includes(typeof value);
}

/** `NAME=value`, or with its length in front for a value of several lines. */
function encodeField(name: string, value: string): Buffer {
  if (!value.includes('\n')) return Buffer.from(`${name}=${value}\n`);
  const bytes = Buffer.from(value);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(bytes.length));
  return Buffer.concat([Buffer.from(`${name}\n`), length, bytes, Buffer.from('\n')]);
}

/** For a service whose journal cannot be reached natively: `<4>sentence` on standard error (sd-daemon(3)). */
export function prefixedLine(line: string): string {
  const entry = readEntry(line);
  if (!entry) return line;
  const text = journalMessage(entry).replaceAll('\n', '\n ');
  return `<${priorities[entry.level]}>${text}\n`;
}
