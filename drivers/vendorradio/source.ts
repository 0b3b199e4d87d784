/** What the keeper of a radio needs from the protocol it is spoken to with. */
import type { Command } from '../../src/driver/command.ts';
import type { Identity, Reading } from './reading.ts';

export interface Known {
  readonly identity: Identity;
  readonly commands: readonly Command[];
}

export interface RadioSource {
  readonly poll_ms: number;
  /** Logs in and finds out who the radio is. Rejects with DeviceUnreachable or DeviceRejected. */
  readonly connect: () => Promise<Known>;
  /** Rejects when the radio does not answer. */
  readonly poll: () => Promise<Reading>;
  /** Puts back what was changed for a while. */
  readonly farewell: () => Promise<void>;
  /** Ends every request and socket, for good. */
  readonly close: () => void;
}

/** What commands ask of the keeper of their radio. */
export interface KeeperHooks {
  /** Polls now; resolves with what was read then, rejects when the radio does not answer or `signal` aborts. */
  readonly pollNow: (signal: AbortSignal) => Promise<Reading>;
  /** For this long the radio may be away, which is no outage to worry about: it was told to. */
  readonly expectAway: (reason: string, ms: number) => void;
}
