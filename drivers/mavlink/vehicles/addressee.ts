/** A vehicle as its commands use it. */
import { silenceSince } from '../../../src/platform/stalls.ts';
import { aborted, deadline } from '../../../src/platform/time.ts';
import type { Contact } from './contact.ts';
import type { Situation } from './situation.ts';
import type { StoredMissions } from './stored-missions.ts';

/** The vehicle that the commands control. */
export interface Commanded {
  /** Returns the addressed autopilot and its situation, or why the vehicle cannot be reached. */
  readonly address: () =>
    | { readonly to: Addressee; readonly situation: Situation }
    | { readonly obstacle: string };
  /** Why what is sent to it may reach another vehicle. */
  readonly conflict: () => string | undefined;
  /** Why what is received of it may be of another vehicle: that has its address too. */
  readonly mixture: () => string | undefined;
  /** What is known of its missions. */
  readonly stored: StoredMissions;
  readonly logs: FlightLogs;
}

export interface LogEntry {
  /** As the vehicle numbers it now: ArduPilot numbers the rest anew when it deletes the oldest. */
  readonly id: number;
  readonly bytes: number;
  /** When it was begun, seconds since 1970; 0: the vehicle did not know the time. */
  readonly time_utc: number;
}

/** A vehicle whose logs are transferred. */
export interface LoggingVehicle extends Pick<Commanded, 'address'> {
  readonly asset_key: string;
  readonly name: () => string;
  /** Aborts when it is removed, and when the driver stops. */
  readonly signal: AbortSignal;
}

/** Transfers the flight logs of a vehicle to the kit. */
export interface FlightLogs {
  /** What is being transferred, for people; undefined: nothing. */
  readonly progress: string | undefined;
  /** Begins to transfer a log, unless another one is under way. */
  readonly begin: (log: LogEntry) => void;
  /** It is armed or disarmed now. */
  readonly armed: (is: boolean) => Promise<void>;
}

/** The vehicle that a command is sent to. */
export interface Addressee {
  readonly name: string;
  /** The link in use to it; another one once that is silent. */
  readonly contact: Contact;
  /** The living links to it, the one in use first. */
  readonly contacts: readonly Contact[];
  readonly changes: Changes;
  /** Returns a function that tells whether the autopilot has restarted since, or another sender stands in for it. */
  readonly watchStart: () => () => boolean;
  /** Why what is received cannot be attributed to it: another vehicle has its system id. */
  readonly conflict: () => string | undefined;
}

/** A vehicle that sends nothing for this long is lost. */
export const silent_ms = 2_000;

export function isHeard({ last_ms }: Contact): boolean {
  return silenceSince(last_ms) < silent_ms;
}

/** Notifies waiting commands that the vehicle's data may have changed. */
export class Changes {
  readonly #listeners = new Set<() => void>();

  notify(): void {
    for (const listener of this.#listeners) listener();
  }

  /** Resolves with the first defined result of `look`, now or after a change; undefined after `ms` or when `signal` aborts. */
  async until<T>(look: () => T | undefined, ms: number, signal: AbortSignal): Promise<T | undefined> {
    const first = look();
    if (first !== undefined || signal.aborted) return first;
    const over = new AbortController();
    let found: T | undefined;
    const listener = (): void => {
      found ??= look();
      if (found !== undefined) over.abort();
    };
    this.#listeners.add(listener);
    const stop = (): void => over.abort();
    const cancel = deadline(ms, stop);
    signal.addEventListener('abort', stop, { once: true });
    try {
      await aborted(over.signal);
      return found;
    } finally {
      cancel();
      signal.removeEventListener('abort', stop);
      this.#listeners.delete(listener);
    }
  }
}
