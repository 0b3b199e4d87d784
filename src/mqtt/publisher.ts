/** Publishes with QoS 1 over a connection: encodes the packets, and matches the PUBACKs with them. */
import type { MqttClient, Packet, PubackPacket } from './client.ts';
import type { Connection } from './connect.ts';
import { encodePublish, type Publication } from './wire/publish-packet.ts';
import type { MqttStream } from './stream.ts';
import { texts } from './texts.ts';

type Answered = (answer: PubackPacket | Error) => void;

/**
 * Messages above what the broker takes at once. The uplink keeps what it sends within the Receive Maximum; a birth, a state and a farewell come
 * on top. A broker that answers pings and nothing else would let these grow without end: the connection is ended instead.
 */
export const waiting_max = 100;

export class Publisher {
  readonly #client: MqttClient;
  readonly #stream: MqttStream;
  readonly #protocol: Connection['protocol'];
  /** By packet identifier. */
  readonly #unanswered = new Map<number, Answered>();
  readonly #receive_maximum: number;
  /** As many as the broker takes are unanswered, or all packet identifiers are in use; `waiting_max` at most. */
  readonly #waiting: { readonly publication: Publication; readonly answered: Answered }[] = [];
  #is_closed = false;
  #onIdle: (() => void) | undefined;

  /** `receive_maximum`: messages that the broker takes before it has acknowledged one of them. */
  constructor(
    { client, stream, protocol }: Pick<Connection, 'client' | 'stream' | 'protocol'>,
    receive_maximum: number,
  ) {
    this.#client = client;
    this.#stream = stream;
    this.#protocol = protocol;
    this.#receive_maximum = receive_maximum;
    stream.expectPubacks({
      has: (packet_id) => this.#unanswered.has(packet_id),
      answered: (packet_id) => this.#answer(packet_id, { cmd: 'puback', messageId: packet_id }),
    });
    // A PUBACK with a reason code, and what answers no message with QoS 1.
    client.on('packetreceive', (packet) => {
      if (packet.cmd === 'puback') {
        stream.pubackHandled();
        this.#answer(packet.messageId ?? 0, packet);
      } else if (isWrongAnswer(packet)) {
        this.#answer(packet.messageId ?? 0, new Error(texts.wrong_answer(packet.cmd)));
      }
    });
  }

  /** `answered` gets the PUBACK, or an error after which none can come. Not called when the connection ends first. */
  publish(publication: Publication, answered: Answered): void {
    if (this.#is_closed || !this.#stream.writable) return;
    if (this.#waiting.length === 0 && this.#send(publication, answered)) return;
    if (this.#waiting.length < waiting_max) this.#waiting.push({ publication, answered });
    else answered(new Error(texts.acknowledges_too_few));
  }

  /** Sends nothing more. Resolves when every message has its answer. */
  async close(): Promise<void> {
    this.#is_closed = true;
    this.#waiting.length = 0;
    if (this.#unanswered.size === 0) return;
    return new Promise((resolve) => {
      this.#onIdle = resolve;
    });
  }

  /** False: it has to wait until another one is answered. */
  #send(publication: Publication, answered: Answered): boolean {
    if (this.#unanswered.size >= this.#receive_maximum) return false;
    const packet_id = this.#client.messageIdProvider.allocate();
    if (packet_id === null) return false;
    this.#unanswered.set(packet_id, answered);
    this.#stream.send(encodePublish(publication, packet_id, this.#protocol));
    return true;
  }

  #answer(packet_id: number, answer: PubackPacket | Error): void {
    const answered = this.#unanswered.get(packet_id);
    if (!answered) return;
    this.#unanswered.delete(packet_id);
    this.#client.messageIdProvider.deallocate(packet_id);
    answered(answer);
    const [next] = this.#waiting;
    if (next && this.#stream.writable && this.#send(next.publication, next.answered)) this.#waiting.shift();
    if (this.#unanswered.size === 0) this.#onIdle?.();
  }
}

/** The answers to another kind of packet. */
function isWrongAnswer(packet: Packet) {
  const { cmd } = packet;
  return cmd === 'pubrec' || cmd === 'pubcomp' || cmd === 'suback' || cmd === 'unsuback';
}
