/** A message that the broker, or the limit that it announced, did not take. */
import { texts } from '../texts.ts';

/** MQTT 5 section 2.4. */
const packet_too_large = 0x95;

export class MessageRefused extends Error {
  override readonly name = 'MessageRefused';
  /** Reason code of the PUBACK (MQTT 5 section 3.4.2.1). */
  readonly code: number;

  constructor(code: number, reason: string) {
    super(texts.broker_refused(reason));
    this.code = code;
  }

  /** A smaller message may be accepted. */
  get isTooLarge(): boolean {
    return this.code === packet_too_large;
  }
}
