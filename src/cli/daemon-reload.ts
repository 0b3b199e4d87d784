/** SIGHUP: the configuration is read again, and taken over as far as a running daemon can. */
import type { App } from '../app.ts';
import type { Config } from '../config.ts';
import { ConfigInvalid } from '../errors.ts';
import type { Log } from '../platform/log.ts';
import type { Notifier } from '../platform/notify.ts';
import type { Shell } from './shell.ts';

export interface Reloading {
  readonly app: Pick<App, 'reload'>;
  /** Rejects with `ConfigInvalid`, and then the configuration before goes on. */
  readonly readAgain: () => Promise<Config>;
  readonly notifier: Pick<Notifier, 'reloading' | 'ready'>;
  readonly log: Log;
  /** Nothing is taken over once this has aborted. */
  readonly signal: AbortSignal;
}

/** What a daemon needs in order to be reloaded. */
export interface Reloads {
  readonly readAgain: Reloading['readAgain'];
  readonly onHangup: (answer: () => void) => void;
}

/** Hears SIGHUP from now on, since its default would end the process, and passes it on once somebody can answer. */
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

/** The function to call at each SIGHUP. One that comes while another is under way is answered after it, once. */
export function reloader(parts: Reloading): () => void {
  let running = false;
  let asked = false;
  const run = async (): Promise<void> => {
    running = true;
    while (asked && !parts.signal.aborted) {
      asked = false;
      parts.notifier.reloading();
      await reloadOnce(parts);
      parts.notifier.ready();
    }
    running = false;
  };
  return () => {
    asked = true;
    if (!running) void run();
  };
}

async function reloadOnce({ app, readAgain, log, signal }: Reloading): Promise<void> {
  try {
    const config = await readAgain();
    if (!signal.aborted) await app.reload(config);
  } catch (error) {
    if (!(error instanceof ConfigInvalid)) {
      log.error({ err: error }, 'the configuration could not be taken over; restart kit-connector');
      return;
    }
    const { faults } = error;
    log.error({ faults: faults.length }, 'the configuration has faults: the one before goes on');
    for (const fault of faults) log.error({}, fault);
  }
}
