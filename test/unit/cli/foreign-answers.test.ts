/**
 * Each subcommand as it is typed, on a terminal, with what others wrote in every text that it reads: of the daemon's answers,
 * of a configuration, of an export. Nothing of it moves the cursor, and it forges no line.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { z } from 'zod';
import { buildProgram, runProgram } from '../../../src/cli/program.ts';
import { CommandRefused } from '../../../src/platform/errors.ts';
import {
  assetForgotten,
  bufferReport,
  type LocalApi,
  healthReport,
  logLevels,
  quarantinedBody,
  quarantinedMessage,
  statusReport,
  tailLine,
  taskView,
} from '../../../src/kit/local/api.ts';
import { serveLocal } from '../../../src/kit/local/server.ts';
import { makeKey } from '../../../src/cloud/principal.ts';
import { openSqlite } from '../../../src/cloud/sql/sqlite.ts';
import { sqlStore } from '../../../src/cloud/store/sql-store.ts';
import { leaves } from '../../../systemd/package/manual.ts';
import { corpus, isDeceptive } from '../../support/foreign-text.ts';
import { withDirectory } from '../../support/temporary.ts';
import {
  drone,
  type FakeDaemon,
  fakeDaemon,
  messageOf,
  statusOf,
  taskOf,
  time,
} from '../kit/local/fake-daemon.ts';
import { recordedShell } from './shell-of-test.ts';

const escape = '\u001B';
/** The colours of our own, the end of each line, and how a screen is cleared and its cursor hidden. */
const ours = new RegExp(`${escape}\\[(?:0|1|22|31|32|33|36|39|90|H|2J|3J|J|K|\\?25[lh])m?|\\n`, 'u');

/** The value with `text` in every place whose schema takes any text: also in those that are added later. */
function poisoned<S extends z.ZodType>(schema: S, value: unknown, text: string): z.output<S> {
  let whole: unknown = structuredClone(value);
  for (const path of textPaths(whole)) {
    const changed = withText(whole, path, text);
    if (schema.safeParse(changed).success) whole = changed;
  }
  return schema.parse(whole);
}

function textPaths(value: unknown, path: readonly string[] = []): readonly (readonly string[])[] {
  if (typeof value === 'string' || value === null) return [path];
  if (typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([key, each]) => textPaths(each, [...path, key]));
}

function withText(value: unknown, [key, ...below]: readonly string[], text: string): unknown {
  if (key === undefined) return text;
  if (typeof value !== 'object' || value === null) return value;
  const changed = Object.entries(value).map(([name, each]: [string, unknown]) => [
    name,
    name === key ? withText(each, below, text) : each,
  ]);
  return Array.isArray(value) ? changed.map(([, each]) => each) : Object.fromEntries(changed);
}

const quarantined = {
  id: 7,
  lane: 'feed',
  channel: 'telemetry',
  time,
  code: 149,
  reason: 'packet too large',
  body_bytes: 2,
};

function hostileDaemon(text: string): FakeDaemon {
  const report = statusOf();
  const whole = {
    ...report,
    kit_name: text,
    degraded: [text],
    warnings: [text],
    uplink: { ...report.uplink, state: 'waiting', next_try_ms: 4_000, unheard: [text] },
    outbox: { ...report.outbox, quarantined: 1, health: { state: 'failing', detail: text } },
    drivers: ['down', 'up'].map((state) => ({
      ...report.drivers[0],
      state,
      facts: { path: text },
      devices: [
        { name: text, tried: text, asset_key: null, state: 'offline', reason: text, tried_at: null },
      ].map((device) => ({ ...device, next_try_at: null, weakness: text })),
    })),
    assets: report.assets.map((asset) => ({ ...asset, status: 'offline' })),
    location: { age_s: null, driver: text, reason: text },
    tasks: { ...report.tasks, recent: [taskOf({ status: 'failed', result: { error: text }, note: text })] },
  };
  const task = taskOf({
    status: 'completed',
    payload: { text },
    result: { text, nested: { list: [text] } },
    note: text,
    origin: { via: 'local', user: text, uid: 1, requested_by: text },
  });
  return fakeDaemon({
    report: () => poisoned(statusReport, whole, text),
    health: async () => poisoned(healthReport, { fault: null, summary: 'x' }, text),
    quarantine: async () => [poisoned(quarantinedMessage, quarantined, text)],
    quarantined: async () => poisoned(quarantinedBody, { ...quarantined, body: '{}' }, text),
    dispatch: async () => poisoned(taskView, { ...task, status: 'pending' }, text),
    tasks: async () => [poisoned(taskView, task, text)],
    task: async () => poisoned(taskView, task, text),
    forgetAsset: () => poisoned(assetForgotten, drone, text),
    logLevels: () => poisoned(logLevels, { levels: [{ name: 'x', level: 'info', until: null }] }, text),
    buffer: async () =>
      poisoned(
        bufferReport,
        {
          lanes: [{ lane: 'feed', rows: 15, bytes: 3_000, memory_rows: 1, oldest: time }],
          quarantined: 1,
          file_bytes: 81_920,
          disk_free_bytes: 9e9,
        },
        text,
      ),
  });
}

interface Typed {
  /** After which the command is stopped: it follows without an end. */
  readonly until?: RegExp;
  /** What the daemon says meanwhile. */
  readonly said?: (text: string) => Parameters<FakeDaemon['say']>[0];
  readonly api?: (text: string) => Partial<LocalApi>;
  /** Files of the directory in which it is typed. */
  readonly files?: (text: string) => Readonly<Record<string, string>>;
}

const message = (text: string) => {
  const asset = { id: drone.id, key: text, name: text };
  const said = messageOf({ asset, feed: text, data: { text, [text]: { nested: [text] } } });
  return poisoned(tailLine, said, text) as ReturnType<typeof messageOf>;
};
const refusal = (text: string) => ({
  dispatch: async () => Promise.reject(new CommandRefused(text)),
  forgetAsset: () => {
    throw new CommandRefused(text);
  },
});
const config = 'clock: trusted\nstate_dir: .\nruntime_dir: .\nbroker: { url: none }\n';
/** `DIR` is where it is typed. */
const service_file = 'broker: { url: mqtt://127.0.0.1:1 }\ndatabase: service.db\nlisten: 127.0.0.1:1\n';
const typing: Readonly<Record<string, Typed>> = {
  status: {},
  health: {},
  'status --watch': { until: /uplink/u },
  'status --json': {},
  tail: { until: /g(?:ate)?/u, said: message },
  'tail --verbose': { until: /gate/u, said: message },
  'tail --json': { until: /gate/u, said: message },
  task: {},
  'task Falcon go': {},
  'task Falcon go --json': {},
  'task Falcon stay': { api: refusal },
  'asset forget Falcon': {},
  'asset forget Falcon --json': {},
  'asset forget Gate': { api: refusal },
  'buffer show': {},
  'buffer quarantine list': {},
  'buffer quarantine show 7': {},
  'log-level': {},
  'log-level --json': {},
  'doctor --config DIR/config.yaml': { files: () => ({ 'config.yaml': config }) },
  'doctor --json --config DIR/config.yaml': { files: () => ({ 'config.yaml': config }) },
  'check DIR/config.yaml': {
    files: (text) => ({ 'config.yaml': `${config}${JSON.stringify(text)}: ${JSON.stringify(text)}\n` }),
  },
  'history import --database DIR/service.db DIR/export.ndjson': {
    files: (text) => ({ 'export.ndjson': `${text}\n`, 'service.db': '' }),
  },
  'service key list --database DIR/service.db': { files: () => ({ 'service.db': '' }) },
  'service doctor -c DIR/service.yaml': { files: () => ({ 'service.db': '', 'service.yaml': service_file }) },
  'service status -c DIR/service.yaml': { files: () => ({ 'service.db': '', 'service.yaml': service_file }) },
};
/** They print nothing that others wrote, with the reason. */
const nothing_foreign: Readonly<Record<string, string>> = {
  run: 'prints its log, which has a test of its own',
  'service run': 'prints its log',
  demo: 'its devices are its own; prints the log and the messages as tail does',
  'service upgrade': 'prints the name of the database that was typed',
  'service backup': 'prints the names that were typed, and a size',
  'service copy-database': 'prints the names that were typed, and a number',
  'service enrol': 'prints the names that were typed',
  'service key add': 'prints the key that it made',
  'service key change': 'prints the id that was typed',
  'service key revoke': 'prints the id that was typed',
  'buffer quarantine retry': 'prints a number',
  'buffer quarantine discard': 'prints a number',
  'support-bundle': 'prints the name of its file',
  'service support-bundle': 'prints the name of its file',
  'history list': 'prints ids and numbers',
  'history export': 'prints a number and the name that was typed',
  login: 'tries it as setup does, setup-trial.test.ts',
  setup: 'setup-trial.test.ts, and foreign-text.test.ts for what it finds',
};

async function printed(words: string, { until, said, api, files }: Typed, text: string): Promise<string> {
  return withDirectory(async (dir) => {
    await mkdir(join(dir, 'state'));
    for (const [name, content] of Object.entries(files?.(text) ?? {})) {
      if (name === 'service.db') await database(join(dir, name), text);
      else await writeFile(join(dir, name), content.replaceAll(': .\n', `: ${dir}/state\n`), { mode: 0o600 });
    }
    const [ends, stop] = [new AbortController(), new AbortController()];
    const socket = join(dir, 'control.sock');
    const daemon = { ...hostileDaemon(text), ...api?.(text) };
    const { closed } = await serveLocal(daemon, { socket, gid: undefined, signal: ends.signal });
    const shell = recordedShell({
      isTTY: true,
      signal: stop.signal,
      onOutput: (output) => {
        if (until?.test(output)) stop.abort();
      },
    });
    const args = words.split(' ').map((word) => word.replace('DIR', dir));
    const talks = leaves(buildProgram(shell, () => undefined)).some(
      ({ words: command, command: { options } }) =>
        (words === command || words.startsWith(`${command} `)) &&
        options.some(({ long }) => long === '--socket'),
    );
    const running = runProgram([...args, ...(talks ? ['--socket', socket] : [])], shell);
    if (said) {
      await daemon.followed(1);
      daemon.say(said(text));
    }
    await running;
    ends.abort();
    await closed;
    return `${shell.stdout()}${shell.stderr()}`.replaceAll(dir, 'DIR');
  });
}

/** With a key of this label. */
async function database(file: string, label: string): Promise<void> {
  const store = sqlStore(openSqlite(file));
  const { key } = makeKey({ label, scopes: ['read'], kits: '*', expires_ms: null }, 0);
  await store.addKey(key);
  await store.close();
}

describe.each(Object.keys(typing))('kit-connector %s', (words) => {
  const how = typing[words] ?? {};

  it('prints nothing that deceives a reader, whatever stands in the texts that it reads', async () => {
    const shown = await printed(words, how, Object.values(corpus).join(' '));
    expect(isDeceptive(shown, ours)).toBe(false);
    expect(shown.split('\n')).toHaveLength((await printed(words, how, 'the gate')).split('\n').length);
  });
});

it('every subcommand is among them, or has a reason why not', () => {
  const shell = recordedShell();
  const commands = leaves(buildProgram(shell, () => undefined)).map(({ words }) => words);
  const tried = (command: string): boolean =>
    Object.hasOwn(nothing_foreign, command) ||
    Object.keys(typing).some((words) => `${words} `.startsWith(`${command} `));
  expect(commands.filter((command) => !tried(command))).toEqual([]);
  expect(Object.keys(nothing_foreign).filter((command) => !commands.includes(command))).toEqual([]);
});
