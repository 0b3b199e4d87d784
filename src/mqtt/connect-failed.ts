/** Why an attempt to connect failed, from what became known of it. */
import { hasCode } from '../platform/errors.ts';
import type { IConnackPacket } from 'mqtt';
import { codeInWords } from './codes.ts';
import { plainFault } from './faults.ts';
import { texts } from './texts.ts';

/**
 * How far an attempt got. `unreachable`: no connection, or TLS failed. `closed` and `silent`: connected, and no CONNACK
 * came. `refused`: by the `code` of a CONNACK.
 */
export type Stage = 'unreachable' | 'closed' | 'silent' | 'refused';

export class ConnectFailed extends Error {
  override readonly name = 'ConnectFailed';
  readonly stage: Stage;
  /** Of CONNACK: as MQTT 5 has it, or 3.1.1 below 6. */
  readonly code: number | undefined;
  /** The other server that it named, if it did. */
  readonly server_reference: string | undefined;

  constructor(message: string, stage: Stage, code?: number, server_reference?: string) {
    super(message);
    this.stage = stage;
    this.code = code;
    this.server_reference = server_reference;
  }
}

/** Collects what becomes known of an attempt. */
export class FailureNotes {
  #refusal: ConnectFailed | undefined;
  #error: Error | undefined;
  #is_time_up = false;

  answered({ reasonCode, returnCode, properties }: IConnackPacket): void {
    const code = reasonCode ?? returnCode;
    if (!code) return;
    const words = codeInWords(code, properties);
    this.#refusal = new ConnectFailed(words, 'refused', code, properties?.serverReference);
  }

  note(error: Error): void {
    this.#error ??= error;
  }

  timeIsUp(): void {
    this.#is_time_up = true;
  }

  conclude(isConnected: boolean): ConnectFailed {
    if (this.#refusal) return this.#refusal;
    const error = this.#error;
    if (this.#is_time_up)
      return isConnected
        ? new ConnectFailed(texts.no_answer, 'silent')
        : new ConnectFailed(texts.no_connection, 'unreachable');
    if (isConnected && (!error || isBroken(error))) return new ConnectFailed(texts.closed_early, 'closed');
    return new ConnectFailed(error ? plainFault(error) : texts.attempt_aborted, 'unreachable');
  }
}

export function isBroken(error: unknown): boolean {
  return hasCode(error, 'ECONNRESET', 'EPIPE');
}
