/** SIGHUP: reads the configuration again and applies what can change without a restart. */
import type { App } from '../../kit/app/app.ts';
import { texts as app_texts } from '../../kit/app/texts.ts';
import type { Config } from '../../kit/config/config.ts';
import { ConfigInvalid } from '../../platform/errors.ts';
import type { Log } from '../../platform/log/log.ts';
import type { Notifier } from '../../platform/systemd/notify.ts';
import type { Shell } from '../terminal/shell.ts';
import { texts } from '../texts.ts';

export interface Reloading {
  readonly app: Pick<App, 'reload' | 'conditions'>;
  /** When it rejects with `ConfigInvalid`, the previous configuration stays in effect. */
  readonly readAgain: () => Promise<Config>;
  readonly notifier: Pick<Notifier, 'reloading' | 'ready'>;
  /** Shows the state of the daemon after a reload. */
  readonly show: () => void;
  readonly log: Log;
  /** No configuration is applied after this has aborted. */
  readonly signal: AbortSignal;
}

/** What a daemon needs in order to be reloaded. */
export interface Reloads {
  readonly readAgain: Reloading['readAgain'];
  readonly onHangup: (answer: () => void) => void;
}

/** Handles SIGHUP from now on, since its default action ends the process, and forwards it once a listener is set. */
export function hangupsOf(shell: Pick<Shell, 'onHangup'>): Pick<Reloads, 'onHangup'> {
  let early = false;
  let answer = (): void => {
    early = true;
  };
  shell.onHangup(() => answer());
  return {
    onHangup(listener) {
      answer = listener;
      if (early) listener();
    },
  };
}

/** Returns the handler of SIGHUP. Signals that arrive during a reload cause one further reload after it. */
export function reloader(parts: Reloading): () => void {
  let running = false;
  let requested = false;
  const run = async (): Promise<void> => {
    running = true;
    while (requested && !parts.signal.aborted) {
      requested = false;
      parts.notifier.reloading();
      await reloadOnce(parts);
      parts.show();
      parts.notifier.ready();
    }
    running = false;
  };
  return () => {
    requested = true;
    if (!running) void run();
  };
}

async function reloadOnce({ app, readAgain, log, signal }: Reloading): Promise<void> {
  try {
    const config = await readAgain();
    if (signal.aborted) return;
    await app.reload(config);
    app.conditions.clear('configuration');
  } catch (error) {
    if (!(error instanceof ConfigInvalid)) {
      log.error({ err: error }, texts.configuration_not_applied);
      app.conditions.note('configuration', app_texts.configuration_not_applied);
      return;
    }
    const { faults } = error;
    log.error({ faults: faults.length }, texts.configuration_rejected);
    app.conditions.note('configuration', app_texts.configuration_rejected(faults.length));
    for (const fault of faults) log.error({}, fault);
  }
}
