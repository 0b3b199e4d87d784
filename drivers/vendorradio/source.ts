/** Interface of a protocol client for the session with a radio. */
import type { Command } from '../../src/toolkit/driver/command.ts';
import type { Identity, Reading } from './reading.ts';

export interface Known {
  readonly identity: Identity;
  readonly commands: readonly Command[];
}

export interface RadioSource {
  readonly poll_ms: number;
  /** Logs in and identifies the radio. Rejects with DeviceUnreachable or DeviceRejected. */
  readonly connect: () => Promise<Known>;
  /** Rejects when the radio does not answer. */
  readonly poll: () => Promise<Reading>;
  /** Restores temporary changes. */
  readonly farewell: () => Promise<void>;
  /** Ends every request and socket, for good. */
  readonly close: () => void;
}

/** Interface of the session with a radio for its commands. */
export interface SessionHooks {
  /** Polls now; resolves with the reading, rejects when the radio does not answer or `signal` aborts. */
  readonly pollNow: (signal: AbortSignal) => Promise<Reading>;
  /** Announces an expected outage of this length, caused by a command. */
  readonly expectAway: (reason: string, ms: number) => void;
}
