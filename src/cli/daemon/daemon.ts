/** Runs the daemon until its signal aborts: embedded broker if none is configured, app, control socket. */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { pid } from 'node:process';
import { mkdir } from 'node:fs/promises';
import { startApp, type App, type AppDeps } from '../../kit/app/app.ts';
import { texts as app_texts } from '../../kit/app/texts.ts';
import type { Config } from '../../kit/config/config.ts';
import { refuseSecond, serveLocal } from '../../kit/local/server.ts';
import { type Clock, type ClockStep, systemClock, openClockEvidence, vouched } from '../../platform/clock.ts';
import type { LogRoot } from '../../platform/log/log.ts';
import { wayTo } from '../../mqtt/proxy.ts';
import { kernelRoutes } from '../../platform/linux/route-lookup.ts';
import { openNotifier } from '../../platform/systemd/notify.ts';
import { aborted, within } from '../../platform/time.ts';
import { texts } from '../texts.ts';
import { keepMetrics } from './metrics.ts';
import { reloader, type Reloads } from './reload.ts';
import { salvageProgress, attendSystemd, extendStart } from './systemd.ts';
import { exit, type Shell } from '../terminal/shell.ts';
import { version } from '../version.ts';
import { systemReason } from '../../platform/errors.ts';

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
        log,
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
