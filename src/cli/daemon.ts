/** Runs the daemon of a configuration until it is told to stop: broker of its own if need be, app, control socket. */
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { pid } from 'node:process';
import { startApp, type App } from '../app.ts';
import type { Config } from '../config.ts';
import { messageOf } from '../errors.ts';
import { isAnswered, serveLocal } from '../local/server.ts';
import { systemClock } from '../platform/clock.ts';
import type { LogRoot } from '../platform/log.ts';
import { giveBackMemory, growSlowly } from '../platform/memory.ts';
import { openNotifier } from '../platform/notify.ts';
import { aborted, within } from '../platform/time.ts';
import { keepMetrics } from './daemon-metrics.ts';
import { reloader, type Reloads } from './daemon-reload.ts';
import { attendSystemd } from './daemon-systemd.ts';
import { exit, type Shell } from './shell.ts';
import { version } from './version.ts';

/** A stop that takes longer is given up; what is on disk is safe anyway. */
const stop_deadline_ms = 10_000;

export interface Running {
  readonly app: App;
  readonly broker_url: string;
}

export interface DaemonParts {
  readonly config: Config;
  readonly log: LogRoot;
  /** Called when everything runs. */
  readonly onReady: (running: Running) => void;
  /** Called when the stop was asked for, before anything ends. */
  readonly onStopping?: (running: Running) => Promise<void>;
  /** Without it SIGHUP means what it means to any process. */
  readonly reloads?: Reloads;
}

/** Answers the exit code. Rejects when it cannot start. */
export async function runDaemon(
  { config, log, onReady, onStopping, reloads }: DaemonParts,
  shell: Shell,
): Promise<number> {
  if (await isAnswered(config.control_socket)) {
    throw new Error(
      `another kit-connector listens on ${config.control_socket}; stop it, or give this one its own runtime_dir`,
    );
  }
  await makeDirectory('state_dir', config.state_dir);
  await makeDirectory('runtime_dir', config.runtime_dir);
  shell.onCrash((err) => log.fatal({ err }, 'the program contradicts itself and ends'));

  const ends = new AbortController();
  const notifier = await openNotifier(shell.env, { pid, signal: ends.signal });
  notifier.status('opening the buffer');
  const broker = await ownBroker(config, log, ends.signal);
  try {
    const app = await startApp(config, {
      log,
      clock: systemClock(),
      version: version(),
      broker: broker.options,
    });
    const running = { app, broker_url: broker.options.url };
    try {
      const socket = config.control_socket;
      const metrics = await metricsOf(app, config, log, shell.signal);
      const local = await serveLocal(app.local, { socket, gid: config.socket_gid, signal: shell.signal });
      const facts = { version: version(), kit_id: config.kit_id, broker: running.broker_url, socket };
      log.info(facts, 'kit-connector is running');
      attendSystemd({ vitals: app.vitals, notifier, log }, shell.signal);
      notifier.ready();
      growSlowly();
      void giveBackMemory(shell.signal);
      reloads?.onHangup(reloader({ ...reloads, app, notifier, log, signal: shell.signal }));
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
    ends.abort();
    await broker.closed;
  }
}

async function metricsOf(app: App, { metrics }: Config, log: LogRoot, signal: AbortSignal) {
  return metrics && keepMetrics(app, { listen: metrics.listen, log, signal });
}

async function stop(app: App, log: LogRoot): Promise<void> {
  const stopped = await within(
    stop_deadline_ms,
    app.stop().then(() => true),
  );
  if (!stopped)
    throw new Error(`the stop was given up after ${stop_deadline_ms / 1000} s; what is on disk is safe`);
  log.info({}, 'kit-connector has stopped');
}

async function ownBroker(config: Config, log: LogRoot, signal: AbortSignal) {
  if (config.broker) return { options: config.broker, closed: Promise.resolve() };
  const { embeddedBrokerOptions, startEmbeddedBroker } = await import('./embedded-broker.ts');
  const { port, closed } = await startEmbeddedBroker(signal);
  const options = embeddedBrokerOptions(config.kit_id, port);
  log.info({ url: options.url }, 'no broker is configured: one of its own runs, for trying out');
  return { options, closed };
}

async function makeDirectory(key: string, dir: string): Promise<void> {
  await makeMissing(dir).catch((error: unknown) => {
    throw new Error(
      `${key} ${dir} cannot be made: ${messageOf(error)}; make it, or choose another in the configuration`,
      {
        cause: error,
      },
    );
  });
}

/** Step by step: where folders cannot be made at all (/proc), `mkdir` with `recursive` tries for ever in Node 24. */
async function makeMissing(dir: string): Promise<void> {
  if (existsSync(dir)) return;
  const parent = dirname(dir);
  if (parent !== dir) await makeMissing(parent);
  await mkdir(dir, { mode: 0o750 });
}
