/**
 * Chooses the version of MQTT. With `auto`, MQTT 5 comes first and 3.1.1 where a broker refuses it; some brokers do so by
 * closing the connection, or by not answering, instead of by a code.
 */
import type { ProtocolVersion } from './broker.ts';
import type { ConnectFailed } from './connect-failed.ts';

/** A broker may be upgraded to MQTT 5: the next connection after this time tries it again. */
const try_5_again_ms = 3_600_000;
/** CONNACK "unsupported protocol version", in MQTT 5 and in 3.1.1. */
const unsupported_version: ReadonlySet<number> = new Set([0x84, 1]);

export class ProtocolChoice {
  readonly #setting: 'auto' | ProtocolVersion;
  readonly #now: () => number;
  #version: ProtocolVersion;
  /** 3.1.1 is tried on suspicion, and has not been answered yet. */
  #is_trial = false;
  #failed_5_ms = 0;

  constructor(setting: 'auto' | ProtocolVersion, now: () => number) {
    this.#setting = setting;
    this.#now = now;
    this.#version = setting === '3.1.1' ? '3.1.1' : '5';
  }

  /** The version for the next attempt. */
  next(): ProtocolVersion {
    const is_time = this.#now() - this.#failed_5_ms > try_5_again_ms;
    if (this.#setting === 'auto' && !this.#is_trial && is_time) this.#version = '5';
    return this.#version;
  }

  connected(): void {
    this.#is_trial = false;
  }

  /** Learns from a failed attempt. True: the other version should be tried at once. */
  failed({ stage, code }: Pick<ConnectFailed, 'stage' | 'code'>): boolean {
    if (this.#setting !== 'auto') return false;
    const is_unsupported = code !== undefined && unsupported_version.has(code);
    const is_unanswered = stage === 'closed' || stage === 'silent';
    if (this.#version === '5') {
      if (!is_unsupported && !is_unanswered) return false;
      this.#failed_5_ms = this.#now();
      this.#version = '3.1.1';
      this.#is_trial = is_unanswered;
      return true;
    }
    if (is_unsupported || (this.#is_trial && stage !== 'refused')) this.#version = '5';
    this.#is_trial = false;
    return false;
  }
}
