/** Where the connection to the broker is: what the status shows of it, and the log lines of an outage. */
import { messageOf } from '../../platform/errors.ts';
import type { Clock } from '../../platform/clock.ts';
import type { ProtocolVersion } from '../../mqtt/broker.ts';
import { reasonOf } from '../../mqtt/codes.ts';
import { ConnectFailed } from '../../mqtt/connect-failed.ts';
import type { Session } from '../../mqtt/session.ts';
import { texts } from './texts.ts';

export interface ConnectionStatus {
  readonly state: 'connected' | 'connecting' | 'waiting' | 'stopped';
  readonly protocol: ProtocolVersion | null;
  /** UTC of the last change of `state` from or to connected, by the clock as it is set now. */
  readonly since_ms: number;
  readonly attempts: number;
  readonly next_try_in_ms: number | null;
  readonly last_error: string | null;
}

export interface UplinkLog {
  debug(facts: object, sentence: string): void;
  info(facts: object, sentence: string): void;
  warn(facts: object, sentence: string): void;
}

export interface ConnectionStateOptions {
  /** The address in use, for people. */
  readonly way: () => string;
  readonly clock: Pick<Clock, 'stamp'>;
  /** Monotonic time. */
  readonly now: () => number;
  readonly log: UplinkLog;
}

export class ConnectionState {
  readonly #options: ConnectionStateOptions;
  #state: ConnectionStatus['state'] = 'connecting';
  #protocol: ProtocolVersion | null = null;
  #attempts = 0;
  #last_error: string | null = null;
  /** Since boot, as is the next one: the time of day may be set while the kit runs. */
  #since_mono_ms: number;
  #next_try_mono_ms: number | undefined;
  /** Monotonic time since when the broker is away, once that was logged. */
  #down_since_ms: number | undefined;

  constructor(options: ConnectionStateOptions) {
    this.#options = options;
    this.#since_mono_ms = options.clock.stamp().mono_ms;
  }

  get online(): boolean {
    return this.#state === 'connected';
  }

  status(): ConnectionStatus {
    const { time_ms, mono_ms } = this.#options.clock.stamp();
    const next_ms = this.#next_try_mono_ms;
    return {
      state: this.#state,
      protocol: this.#protocol,
      since_ms: time_ms - (mono_ms - this.#since_mono_ms),
      attempts: this.#attempts,
      next_try_in_ms: next_ms === undefined ? null : Math.max(0, next_ms - mono_ms),
      last_error: this.#last_error,
    };
  }

  attempt(): void {
    this.#attempts += 1;
    this.#change('connecting');
  }

  /** The other version of MQTT is tried at once. */
  otherVersion(error: unknown): void {
    const facts = { broker: this.#options.way(), reason: messageOf(error) };
    const { log } = this.#options;
    this.#last_error = messageOf(error);
    const sentence = texts.mqtt5_refused;
    if (this.#down_since_ms === undefined) log.info(facts, sentence);
    else log.debug(facts, sentence);
  }

  failed(error: unknown): void {
    const { way, log, now } = this.#options;
    const code = error instanceof ConnectFailed ? error.code : undefined;
    this.#last_error = messageOf(error);
    const facts = {
      broker: way(),
      reason: messageOf(error),
      attempts: this.#attempts,
      ...(code !== undefined && { remedy: reasonOf(code).remedy }),
    };
    if (this.#down_since_ms !== undefined) log.debug(facts, texts.still_offline);
    else if (code === undefined) log.warn(facts, texts.broker_unreachable);
    else log.warn(facts, texts.broker_refused);
    this.#down_since_ms ??= now();
  }

  connected({ protocol, session_present }: Pick<Session, 'protocol' | 'session_present'>): void {
    const { way, log, now } = this.#options;
    this.#change('connected');
    this.#protocol = protocol;
    const down_ms = this.#down_since_ms === undefined ? undefined : now() - this.#down_since_ms;
    log.info(
      {
        broker: way(),
        protocol,
        session_present,
        ...(down_ms !== undefined && { down_s: Math.round(down_ms / 100) / 10 }),
      },
      'connected to the broker',
    );
    this.#down_since_ms = undefined;
  }

  /** The session ended, whether it was served or not. */
  lost(reason: string, held_ms: number): void {
    this.#last_error = reason;
    this.#options.log.warn({ reason, held_s: Math.round(held_ms / 1000) }, texts.broker_lost);
    this.#down_since_ms ??= this.#options.now();
  }

  connecting(): void {
    if (this.online) this.#change('connecting');
  }

  waiting(pause_ms: number): void {
    this.#change('waiting');
    this.#next_try_mono_ms = this.#options.clock.stamp().mono_ms + pause_ms;
  }

  stopped(): void {
    this.#change('stopped');
  }

  #change(state: ConnectionStatus['state']): void {
    const was_online = this.online;
    this.#state = state;
    this.#next_try_mono_ms = undefined;
    if (was_online !== this.online) this.#since_mono_ms = this.#options.clock.stamp().mono_ms;
  }
}
