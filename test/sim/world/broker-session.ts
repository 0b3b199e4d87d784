/** What the broker keeps of one client: subscriptions, what waits for it, what it has not acknowledged, its will. */
import type { IConnectPacket, IPublishPacket } from 'mqtt-packet';

export interface Message {
  readonly topic: string;
  readonly payload: Buffer;
  readonly retain: boolean;
  /** Virtual time at which it is worth nothing any more. */
  readonly expires_ms: number;
  /** When the publisher had its PUBACK. */
  readonly taken_ms: number;
}

export interface Subscription {
  readonly filter: string;
  readonly rap: boolean;
}

/** The way to a connected client. */
export interface Attached {
  readonly version: 4 | 5;
  readonly receive_maximum: number;
  readonly publish: (packet: IPublishPacket) => void;
}

const ids_max = 65_535;

export class BrokerSession {
  readonly client_id: string;
  readonly subscriptions = new Map<string, Subscription>();
  attached: Attached | undefined;
  will: IConnectPacket['will'];
  /** Virtual time at which the broker forgets it. */
  ends_ms = Number.POSITIVE_INFINITY;
  readonly #waiting: Message[] = [];
  readonly #in_flight = new Map<number, Message>();
  #last_id = 0;

  readonly #lost: (messages: readonly Message[]) => void;

  /** `lost`: told of what was too old when its turn came. */
  constructor(client_id: string, lost: (messages: readonly Message[]) => void) {
    this.client_id = client_id;
    this.#lost = lost;
  }

  /** All that the client has not acknowledged. */
  get held(): readonly Message[] {
    return [...this.#in_flight.values(), ...this.#waiting];
  }

  matches(topic: string): Subscription | undefined {
    return [...this.subscriptions.values()].find(({ filter }) => topicMatches(filter, topic));
  }

  /** `place`: where it goes among what waits; left out: behind. */
  enqueue(message: Message, now_ms: number, place = this.#waiting.length): void {
    this.#waiting.splice(Math.min(place, this.#waiting.length), 0, message);
    this.pump(now_ms);
  }

  /** What was in flight goes again, marked as a duplicate. */
  resume(now_ms: number): void {
    for (const [id, message] of this.#in_flight) this.#send(id, message, true);
    this.pump(now_ms);
  }

  acknowledged(id: number, now_ms: number): void {
    this.#in_flight.delete(id);
    this.pump(now_ms);
  }

  /** Sends as much as the client takes. */
  pump(now_ms: number): void {
    while (this.attached && this.#in_flight.size < this.attached.receive_maximum) {
      const message = this.#waiting.shift();
      if (!message) return;
      if (message.expires_ms < now_ms) {
        this.#lost([message]);
        continue;
      }
      const id = this.#freeId();
      this.#in_flight.set(id, message);
      this.#send(id, message, false);
    }
  }

  #send(messageId: number, { topic, payload, retain }: Message, dup: boolean): void {
    this.attached?.publish({ cmd: 'publish', qos: 1, messageId, dup, retain, topic, payload });
  }

  #freeId(): number {
    do this.#last_id = this.#last_id >= ids_max ? 1 : this.#last_id + 1;
    while (this.#in_flight.has(this.#last_id));
    return this.#last_id;
  }
}

/** MQTT's wildcards: `+` is one level, `#` is all that follow. */
export function topicMatches(filter: string, topic: string): boolean {
  const [wanted, words] = [filter.split('/'), topic.split('/')];
  for (const [index, word] of wanted.entries()) {
    if (word === '#') return true;
    if (index >= words.length || (word !== '+' && word !== words[index])) return false;
  }
  return wanted.length === words.length;
}
