/** Runs the daemon until its signal aborts: embedded broker if none is configured, app, control socket. */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { pid } from 'node:process';
import { mkdir } from 'node:fs/promises';
import { type App, type AppDeps, startApp } from '../../kit/app/app.ts';
import { texts as app_texts } from '../../kit/app/texts.ts';
import type { Config } from '../../kit/config/config.ts';
import { refuseSecond, serveLocal } from '../../kit/local/server.ts';
import { type Clock, type ClockStep, openClockEvidence, systemClock, vouched } from '../../platform/clock.ts';
import type { Log, LogRoot } from '../../platform/log/log.ts';
import { wayTo } from '../../mqtt/proxy.ts';
import { kernelRoutes } from '../../platform/linux/route-lookup.ts';
import { type Notifier, openNotifier } from '../../platform/systemd/notify.ts';
import { aborted, every, sleep, within } from '../../platform/time.ts';
import { texts } from '../texts.ts';
import { keepMetrics } from './metrics.ts';
import { reloader, type Reloads } from './reload.ts';
import { exit, type Output, type Shell } from '../terminal/shell.ts';
import { version } from '../version.ts';
import { systemReason } from '../../platform/errors.ts';
import type { Vitals } from '../../kit/app/vitals.ts';
import { LiveLine, progressText } from '../terminal/progress.ts';

const status_every_ms = 10_000;
/** Reading or repairing a large buffer takes minutes on a slow board; a start that hangs is ended after this time. */
const start_max_ms = 900_000;
const extend_every_ms = 10_000;
const extend_by_ms = 60_000;
/** Watchdog notifications within the time after which systemd restarts the service. */
const beats = 3;

interface Attended {
  readonly vitals: Vitals;
  readonly notifier: Notifier;
  readonly log: Log;
}

/** Extends the start timeout of systemd until `signal` aborts, for a quarter of an hour at most. */
export function extendStart(notifier: Pick<Notifier, 'extendStart'>, signal: AbortSignal): void {
  const began_ms = performance.now();
  const extend = (): void => {
    if (performance.now() - began_ms < start_max_ms) notifier.extendStart(extend_by_ms);
  };
  extend();
  every(extend_every_ms, signal, extend);
}

/** Reports to systemd until `signal` aborts. Returns what shows the status at once. */
export function attendSystemd({ vitals, notifier, log }: Attended, signal: AbortSignal): () => void {
  const show = (): void => notifier.status(vitals.summary());
  show();
  every(status_every_ms, signal, show);
  if (notifier.watchdog_ms !== null) {
    void feedWatchdog({ vitals, notifier, log }, notifier.watchdog_ms / beats, signal);
  }
  return show;
}

/** Notifies the watchdog only after every part has made progress. Logs the first failure, which explains the restart. */
async function feedWatchdog(
  { vitals, notifier, log }: Attended,
  beat_ms: number,
  signal: AbortSignal,
): Promise<void> {
  let troubled_ms: number | undefined;
  while (!signal.aborted) {
    const began_ms = performance.now();
    const trouble = await vitals.check(beat_ms);
    if (signal.aborted) return;
    if (trouble === undefined) notifier.alive();
    if (trouble !== undefined && troubled_ms === undefined) {
      log.error({ reason: trouble }, texts.no_progress);
    }
    if (trouble === undefined && troubled_ms !== undefined) {
      log.info({ down_s: (performance.now() - troubled_ms) / 1_000 }, 'progress resumed');
    }
    troubled_ms = trouble === undefined ? undefined : (troubled_ms ?? began_ms);
    await sleep(Math.max(0, beat_ms - (performance.now() - began_ms)), signal);
  }
}

// Shows how far the reading of a damaged buffer file is: as a bar on a terminal, as log lines elsewhere, and to systemd.

const log_every_ms = 10_000;

interface SalvageParts {
  readonly out: Output;
  readonly log: Pick<Log, 'info'>;
  readonly notifier: Pick<Notifier, 'status'>;
  readonly now_ms: () => number;
}

/** Receives every report. The bar disappears with the last one; without a terminal the first and every tenth second are logged. */
export function salvageProgress({
  out,
  log,
  notifier,
  now_ms,
}: SalvageParts): NonNullable<AppDeps['onSalvage']> {
  const live = new LiveLine(out);
  let logged_ms = Number.NEGATIVE_INFINITY;
  return ({ rows_saved, rows_expected, done }) => {
    const counts = texts.salvaged(rows_saved, rows_expected);
    notifier.status(done ? texts.opening_buffer : `${texts.salvaging}: ${counts}`);
    if (out.isTTY === true) {
      const bar = progressText({
        what: texts.salvage,
        done: rows_saved,
        total: rows_expected ?? 0,
        facts: [counts],
      });
      live.show(done ? '' : bar);
      return;
    }
    if (done || now_ms() - logged_ms < log_every_ms) return;
    logged_ms = now_ms();
    log.info({ rows_saved, rows_expected }, texts.salvaging);
  };
}

/** Limit of a shutdown. Data on disk is safe when it is exceeded. */
const stop_deadline_ms = 10_000;

export interface Running {
  readonly app: App;
  readonly broker_url: string;
}

interface DaemonParts extends Pick<AppDeps, 'writeBundle'> {
  readonly config: Config;
  readonly log: LogRoot;
  /** Called when every part has started. */
  readonly onReady: (running: Running) => void;
  /** Called when a stop was requested, before any part ends. */
  readonly onStopping?: (running: Running) => Promise<void>;
  /** Without it SIGHUP has its default action. */
  readonly reloads?: Reloads;
}

/** Returns the exit code. Rejects when the daemon cannot start. */
export async function runDaemon(
  { config, log, writeBundle, onReady, onStopping, reloads }: DaemonParts,
  shell: Shell,
): Promise<number> {
  await refuseSecond(config.control_socket);
  await makeDirectory('state_dir', config.state_dir);
  await makeDirectory('runtime_dir', config.runtime_dir);
  shell.onCrash((err) => log.fatal({ err }, texts.internal_error));

  const ends = new AbortController();
  const starting = new AbortController();
  const notifier = await openNotifier(shell.env, { pid, signal: ends.signal });
  notifier.status(texts.opening_buffer);
  extendStart(notifier, starting.signal);
  const broker = await ownBroker(config, log, ends.signal);
  try {
    const app = await startApp(config, {
      log,
      clock: await openClock(config, log),
      version: version(),
      broker: broker.options,
      onSalvage: salvageProgress({ out: shell.out, log, notifier, now_ms: () => performance.now() }),
      routes: kernelRoutes,
      writeBundle,
    });
    const running = { app, broker_url: broker.options.url };
    try {
      const socket = config.control_socket;
      const metrics = await metricsOf(app, config, log, shell.signal);
      const local = await serveLocal(app.local, {
        socket,
        gid: config.socket_gid,
        signal: shell.signal,
      });
      const facts = { version: version(), kit_id: config.kit_id, broker: wayTo(broker.options), socket };
      log.info(facts, 'kit-connector started');
      const show = attendSystemd({ vitals: app.vitals, notifier, log }, shell.signal);
      starting.abort();
      notifier.ready();
      app.startDrivers();
      reloads?.onHangup(reloader({ ...reloads, app, notifier, show, log, signal: shell.signal }));
      onReady(running);
      await Promise.race([aborted(shell.signal), app.crashed]);
      notifier.stopping();
      await onStopping?.(running);
      await Promise.all([local.closed, metrics?.closed]);
    } finally {
      await stop(app, log);
    }
    return exit.ok;
  } finally {
    starting.abort();
    ends.abort();
    await broker.closed;
  }
}

/** Waits for the evidence of a synchronised clock: the deadlines of open tasks are checked right after the start. */
async function openClock({ clock }: Config, log: LogRoot): Promise<Clock> {
  const evidence = clock === 'trusted' ? vouched : await openClockEvidence();
  const onStep = ({ from_ms, to_ms, by_ms }: ClockStep): void => {
    const facts = { from: isoOf(from_ms), to: isoOf(to_ms), by_s: Math.round(by_ms) / 1_000 };
    log.warn(facts, by_ms < 0 ? texts.clock_back : texts.clock_forward);
  };
  return systemClock({ evidence, onStep });
}

function isoOf(time_ms: number): string {
  return new Date(time_ms).toISOString();
}

async function metricsOf(app: App, { metrics }: Config, log: LogRoot, signal: AbortSignal) {
  const onFault = (reason: string | undefined): void => {
    if (reason === undefined) app.conditions.clear('metrics');
    else app.conditions.note('metrics', app_texts.metrics_off(reason));
  };
  return metrics && keepMetrics(app, { ...metrics, log, signal, onFault });
}

async function stop(app: App, log: LogRoot): Promise<void> {
  const stopped = await within(
    stop_deadline_ms,
    app.stop().then(() => true),
  );
  if (!stopped) throw new Error(texts.stop_timed_out(stop_deadline_ms / 1000));
  log.info({}, 'kit-connector stopped');
}

async function ownBroker(config: Config, log: LogRoot, signal: AbortSignal) {
  if (config.broker) return { options: config.broker, closed: Promise.resolve() };
  const { embeddedBrokerOptions, startEmbeddedBroker } = await import('./embedded-broker.ts');
  const { port, closed } = await startEmbeddedBroker(signal);
  const options = embeddedBrokerOptions(config.kit_id, port);
  log.info({ url: options.url }, texts.embedded_broker_started);
  return { options, closed };
}

/** Creates the directory and its parents; an error names `key` of the configuration. */
export async function makeDirectory(key: string, dir: string): Promise<void> {
  await makeMissing(dir).catch((error: unknown) => {
    throw new Error(texts.dir_not_made(key, dir, systemReason(error)), { cause: error });
  });
}

/** Level by level: under a file system without support for new directories (/proc), `mkdir` with `recursive` never returns in Node 24. */
async function makeMissing(dir: string): Promise<void> {
  if (existsSync(dir)) return;
  const parent = dirname(dir);
  if (parent !== dir) await makeMissing(parent);
  await mkdir(dir, { mode: 0o750 });
}
