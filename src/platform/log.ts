/** The log: JSON lines for machines, one readable line each on a terminal; secrets are taken out of both. */
import { styleText } from 'node:util';
import { pino, type Logger } from 'pino';

export type Level = 'debug' | 'info' | 'warn' | 'error' | 'fatal';

/** Facts first, then a fixed sentence. */
export interface Log {
  debug(facts: object, sentence: string): void;
  info(facts: object, sentence: string): void;
  warn(facts: object, sentence: string): void;
  error(facts: object, sentence: string): void;
  fatal(facts: object, sentence: string): void;
  /** A log whose lines carry `facts`. One with a `driver` has the level of that driver instance. */
  child(facts: Readonly<Record<string, string>>): Log;
}

export interface LogRoot extends Log {
  /** Changes the level of one driver, or of everything that has no level of its own. */
  readonly setLevel: (level: Level, driver?: string) => void;
}

export interface LogOptions {
  readonly level: Level;
  /** By name of the driver instance. */
  readonly drivers?: Readonly<Record<string, Level>>;
  readonly out: { write(line: string): unknown };
  /** Lines for a person instead of JSON. */
  readonly readable: boolean;
}

export function createLog({ level, drivers = {}, out, readable }: LogOptions): LogRoot {
  const root = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: (facts) => withoutSecrets(facts) },
      hooks: { streamWrite: (line) => hideCredentials(line) },
    },
    readable ? { write: (line: string) => out.write(readableLine(line)) } : out,
  );
  const ownLevels = new Map<string, Level>(Object.entries(drivers));
  const children: { readonly driver: string | undefined; readonly logger: Logger }[] = [];
  const levelOf = (driver: string | undefined): string => ownLevels.get(driver ?? '') ?? root.level;
  const bind = (logger: Logger, owner?: string): Log => ({
    debug: (facts, sentence) => logger.debug(facts, sentence),
    info: (facts, sentence) => logger.info(facts, sentence),
    warn: (facts, sentence) => logger.warn(facts, sentence),
    error: (facts, sentence) => logger.error(facts, sentence),
    fatal: (facts, sentence) => logger.fatal(facts, sentence),
    child: (facts) => {
      const driver = facts['driver'] ?? owner;
      const child = logger.child(facts, { level: levelOf(driver) });
      children.push({ driver, logger: child });
      return bind(child, driver);
    },
  });
  return {
    ...bind(root),
    setLevel: (next, driver) => {
      if (driver === undefined) root.level = next;
      else ownLevels.set(driver, next);
      for (const child of children) child.logger.level = levelOf(child.driver);
    },
  };
}

const secretKey = /passw|passphrase|secret|token|authorization|credential|api_?key|^key$|^pass$/i;
const depth_max = 6;

/** A copy in which values of keys that sound like secrets are hidden, and errors are reduced to what a reader needs. */
function withoutSecrets(facts: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(facts).map(([key, value]) => [
      key,
      secretKey.test(key) ? '***' : harmless(value, depth_max),
    ]),
  );
}

function harmless(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Error) return errorFacts(value, depth);
  if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes`;
  if (depth === 0) return '...';
  if (Array.isArray(value)) return value.map((item) => harmless(item, depth - 1));
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      key,
      secretKey.test(key) ? '***' : harmless(item, depth - 1),
    ]),
  );
}

/** Errors of libraries carry whole requests with them, passwords included: only these fields are kept. */
function errorFacts(error: Error, depth: number): object {
  return {
    type: error.name,
    message: error.message,
    ...('code' in error ? { code: error.code } : {}),
    stack: error.stack,
    ...(error.cause !== undefined && depth > 0 ? { cause: harmless(error.cause, depth - 1) } : {}),
  };
}

/** `user:password@` in addresses, wherever they stand in the line. */
function hideCredentials(line: string): string {
  return line.replaceAll(/(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/@"\\]+@/gi, '$1***@');
}

const colours = { debug: 'gray', info: 'green', warn: 'yellow', error: 'red', fatal: 'red' } as const;

/** `12:30:01 warn  camera-1  device is unavailable  reason=timeout` */
function readableLine(line: string): string {
  const entry: unknown = JSON.parse(line);
  if (typeof entry !== 'object' || entry === null) return line;
  const facts = new Map<string, unknown>(Object.entries(entry));
  const take = (key: string): string => {
    const value = facts.get(key);
    facts.delete(key);
    return typeof value === 'string' ? value : '';
  };
  const [time, level, sentence] = [take('time'), take('level'), take('msg')];
  const subject = [take('driver') || take('part'), take('asset_key') || take('asset')]
    .filter(Boolean)
    .join(' ');
  const colour = isLevel(level) ? colours[level] : 'gray';
  return `${[
    styleText('gray', time.slice(11, 19), { validateStream: false }),
    styleText(colour, level.padEnd(5), { validateStream: false }),
    ...(subject ? [styleText('cyan', subject, { validateStream: false })] : []),
    sentence,
    ...[...facts].map(([key, value]) =>
      styleText('gray', `${key}=${factText(value)}`, { validateStream: false }),
    ),
  ].join('  ')}\n`;
}

function isLevel(text: string): text is Level {
  return Object.hasOwn(colours, text);
}

function factText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'object' && value !== null && 'message' in value) return factText(value.message);
  return JSON.stringify(value);
}
