/**
 * Finds a message that makes the broker hang up. Some brokers close the connection instead of refusing a message; sent again
 * first thing after every reconnect, it would block the queue permanently. A link that breaks looks the same, so a loss is held
 * against a message only as evidence: it was alone in flight, its kind of topic had been in flight alone at an earlier loss,
 * and the connection had answered several times before it was sent. What the evidence amounts to, the outbox decides.
 */
import { channelKind } from '../contract/topics.ts';
import { outgoingId, type OutgoingMessage } from '../outbox/live/outgoing.ts';
import type { RowId } from '../outbox/row.ts';

/** Losses with messages in flight, after which one is sent at a time. */
const losses_until_cautious = 2;
/** Messages in a row that are answered end the caution. */
const answers_to_trust = 16;
/** Answers of a connection, before a suspected kind is sent on it. A link that breaks now and then breaks among them. */
const answers_until_calm = 4;
/** Losses in a row during which the search continues with the shortest pauses between connections. */
const searched_losses_max = 12;
/** Messages that are suspected at once; the oldest is forgotten. */
const ids_max = 64;
/**
 * DISCONNECT codes about a packet: malformed, protocol error, topic name invalid, topic alias invalid, packet too large,
 * payload format invalid, retain or QoS not supported (MQTT 5 section 3.14.2.1).
 */
const codes_about_a_packet: ReadonlySet<number> = new Set([0x81, 0x82, 0x90, 0x94, 0x95, 0x99, 0x9a, 0x9b]);

export class Suspicion {
  #losses = 0;
  #answers_in_a_row = 0;
  /** On this connection, of messages and pings. */
  #answers = 0;
  /** Kinds of topics that were in flight alone at a loss; the contract has few. */
  readonly #kinds = new Set<string>();
  /** Messages that were, whatever others of their kind have shown since. */
  readonly #ids = new Set<RowId>();

  /** One message at a time, until trust is back. */
  get cautious(): boolean {
    return this.#losses >= losses_until_cautious;
  }

  /** A culprit is looked for: the next connection should not wait long. */
  get is_searching(): boolean {
    return this.#losses > 0 && this.#losses <= searched_losses_max;
  }

  /** This connection has answered often enough for a loss to mean something. */
  get is_calm(): boolean {
    return this.#answers >= answers_until_calm;
  }

  /** To be sent alone, and only once the connection is calm. */
  isolates(outgoing: OutgoingMessage): boolean {
    if (this.#kinds.size === 0 && this.#ids.size === 0) return false;
    return this.#kinds.has(channelKind(outgoing.channel)) || this.#ids.has(outgoingId(outgoing));
  }

  connected(): void {
    this.#answers = 0;
  }

  ponged(): void {
    this.#answers += 1;
  }

  /** The broker answered a message, with any code. */
  answered(outgoing: OutgoingMessage): void {
    this.#answers += 1;
    if (this.#ids.size > 0) this.#ids.delete(outgoingId(outgoing));
    if (this.#kinds.size > 0) this.#kinds.delete(channelKind(outgoing.channel));
    if (this.#losses === 0) return;
    this.#answers_in_a_row += 1;
    if (this.#answers_in_a_row >= answers_to_trust) this.#losses = 0;
  }

  /** The connection ended, not by us, while these were in flight. Returns the one against which that is evidence. */
  hungUp(
    in_flight: readonly OutgoingMessage[],
    disconnect_code: number | undefined,
  ): OutgoingMessage | undefined {
    const [only] = in_flight;
    if (!only) return undefined;
    this.#answers_in_a_row = 0;
    const isTold = disconnect_code !== undefined && codes_about_a_packet.has(disconnect_code);
    this.#losses = Math.max(this.#losses + 1, isTold ? losses_until_cautious : 0);
    if (in_flight.length > 1) return undefined;
    const isEvidence = isTold || (this.isolates(only) && this.is_calm);
    this.#kinds.add(channelKind(only.channel));
    this.#ids.add(outgoingId(only));
    const [oldest] = this.#ids.size > ids_max ? this.#ids : [];
    if (oldest !== undefined) this.#ids.delete(oldest);
    return isEvidence ? only : undefined;
  }
}
