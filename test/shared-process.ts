/**
 * The guard of test files that share a process: it costs most of a second of the processor to start one and to read the sources
 * again, for each file. So that none changes how the next one ends, each leaves the process as it found it, or fails.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { afterAll } from 'vitest';
import { outliving } from './support/outliving.ts';

/** What closes after the last test, on a busy machine, has this long. */
const grace_ms = 20_000;
const look_every_ms = 20;

/** Kept by Node.js and by vitest for later, whatever a test does. */
const kept_resources = new Set([
  'TCPSocketWrap',
  'TTYWrap',
  'FSReqPromise',
  'FSReqCallback',
  'Immediate',
  'TickObject',
]);

/** Globals of libraries, which come with their import: zod and tslib, and mqtt. */
const of_libraries = /^__|^regeneratorRuntime$/u;

/** Opened when they are first asked for, all three by an import of `node:process`. */
const { stdin, stdout, stderr } = process;
void stdin;

/** What a test may replace for a while: of which object, and the names. */
const replaceable: readonly (readonly [string, object, readonly string[]])[] = [
  [
    '',
    globalThis,
    ['setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask', 'Date', 'fetch', 'console'],
  ],
  ['console.', console, ['log', 'warn', 'error']],
  ['Math.', Math, ['random']],
  ['performance.', performance, ['now']],
  ['process.', process, ['kill', 'exit', 'hrtime']],
  ['process.stdout.', stdout, ['write']],
  ['process.stderr.', stderr, ['write']],
];

interface Found {
  /** By name; each must be the same again. */
  readonly same: ReadonlyMap<string, unknown>;
  /** By name; there must not be more of them again. */
  readonly counts: ReadonlyMap<string, number>;
}

function look(): Found {
  const same = new Map<string, unknown>([
    ['working directory', process.cwd()],
    ['umask', process.umask()],
    ['user', `${process.geteuid?.()} ${process.getegid?.()}`],
    ['network namespace', readlinkSync('/proc/self/ns/net')],
    ['exit code', process.exitCode],
    ['title', process.title],
  ]);
  for (const [name, value] of Object.entries(process.env)) same.set(`environment ${name}`, value);
  for (const [of, object, names] of replaceable)
    for (const name of names) same.set(`${of}${name}`, Reflect.get(object, name));
  const counts = new Map<string, number>();
  const count = (name: string, more = 1): void => void counts.set(name, (counts.get(name) ?? 0) + more);
  for (const name of Object.getOwnPropertyNames(globalThis))
    if (!of_libraries.test(name)) count(`global ${name}`);
  for (const event of process.eventNames())
    count(`listener of process for ${String(event)}`, process.listenerCount(event));
  for (const kind of process.getActiveResourcesInfo()) if (!kept_resources.has(kind)) count(kind);
  for (const pid of children()) count(`child process ${pid}`);
  return { same, counts };
}

/** Those of all threads that end with their file. */
function children(): readonly string[] {
  const all = readdirSync('/proc/self/task').flatMap((thread) => childrenOf(thread));
  return all.filter((pid) => !outliving.has(Number(pid)));
}

function childrenOf(thread: string): readonly string[] {
  try {
    return readFileSync(`/proc/self/task/${thread}/children`, 'utf8').split(' ').filter(Boolean);
  } catch {
    // The thread ended meanwhile.
    return [];
  }
}

/** What differs for the next file, each in words. */
function changes(before: Found, after: Found): readonly string[] {
  const names = new Set([...before.same.keys(), ...after.same.keys()]);
  const changed = [...names].filter((name) => before.same.get(name) !== after.same.get(name));
  const more = [...after.counts].filter(([name, n]) => n > (before.counts.get(name) ?? 0));
  return [
    ...changed.map(
      (name) => `${name} is ${String(after.same.get(name))}, was ${String(before.same.get(name))}`,
    ),
    ...more.map(([name, n]) => `${n} ${name}, was ${before.counts.get(name) ?? 0}`),
  ];
}

const found = look();
// Kept, since a test may leave fake ones behind.
const now = performance.now.bind(performance);
const { setTimeout: later } = globalThis;

// The first of a file to be registered, so the last to run.
afterAll(async () => {
  const deadline_ms = now() + grace_ms;
  for (;;) {
    const left = changes(found, look());
    if (left.length === 0) return;
    if (now() > deadline_ms)
      throw new Error(`left behind in the process that the next file runs in:\n  ${left.join('\n  ')}`);
    await new Promise((resolve) => later(resolve, look_every_ms));
  }
}, grace_ms * 2);
