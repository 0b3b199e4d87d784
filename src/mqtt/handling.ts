/** Passes messages of the broker to their handler: each is acknowledged once it is handled, in any order. */
import type { MqttStream } from './stream.ts';

export interface Received {
  readonly topic: string;
  readonly payload: Buffer;
  readonly retained: boolean;
  readonly duplicate: boolean;
}

export interface HandlingOptions {
  /**
   * Resolves when the broker may forget the message: its PUBACK leaves then, while the next ones are read already. False:
   * no PUBACK is sent, so that the message comes again in a later connection. Rejecting ends the connection.
   */
  readonly onMessage: (message: Received) => Promise<boolean>;
  /**
   * Messages that are handled at the same time, at most; nothing more is read meanwhile. MQTT 3.1.1 has no Receive Maximum,
   * and mosquitto 2.0.11 sends all that a resumed session has queued whatever the Receive Maximum is. Left out: no limit.
   */
  readonly unhandled_max?: number | undefined;
}

const puback_byte = 0x40;

export class Handling {
  readonly #options: HandlingOptions;
  #under_way = 0;
  /** Reads on; set while as many messages are under way as may be. */
  #resume: (() => void) | undefined;

  constructor(options: HandlingOptions) {
    this.#options = options;
  }

  /** `packet_id` undefined: QoS 0, which is not acknowledged. `resume` is called when the next message may come. */
  take(message: Received, packet_id: number | undefined, stream: MqttStream, resume: () => void): void {
    this.#under_way += 1;
    void this.#handle(message, packet_id, stream);
    if (this.#under_way < (this.#options.unhandled_max ?? Infinity)) resume();
    else this.#resume = resume;
  }

  async #handle(message: Received, packet_id: number | undefined, stream: MqttStream): Promise<void> {
    try {
      const isDone = await this.#options.onMessage(message);
      if (isDone && packet_id !== undefined) acknowledge(packet_id, stream);
    } catch (error) {
      stream.fail(error instanceof Error ? error : new Error(String(error)));
    }
    this.#under_way -= 1;
    const resume = this.#resume;
    this.#resume = undefined;
    resume?.();
  }
}

/** Sends a PUBACK with reason code 0, the same in either version. */
export function acknowledge(packet_id: number, stream: MqttStream): void {
  if (stream.writable) stream.write(Buffer.from([puback_byte, 2, packet_id >> 8, packet_id & 0xff]));
}
