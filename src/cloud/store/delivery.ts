/** The messages of a transaction, by kit. */
import type { Json } from '../../contract/json.ts';
import type { Message, Reception, Refusal } from '../read-message.ts';
import type { WholeBatch } from '../history/landing.ts';
import type { Count } from '../stored/commit-rows.ts';

/** The messages of one kit, from all receptions of the transaction. */
export interface Delivery {
  readonly kit_id: string;
  readonly messages: Message[];
  /** Batches as they came. */
  readonly batches: WholeBatch[];
  /** Messages from the buffer of the kit. */
  readonly historical: Set<Message>;
  readonly cleared: string[];
  /** Why messages could not be read. */
  readonly refused: Refusal[];
  heard_ms: number;
  vouched_ms: number | null;
  /** The kit itself has sent something now. */
  isLive: boolean;
  /** It has sent a message or a birth: what the broker keeps of it, its will and what others clear there say nothing of that. */
  isPresent: boolean;
  isImported: boolean;
  /** A birth is among the messages. */
  isBorn: boolean;
}

/** Groups the receptions by kit, in the order of their ids, so that two replicas never deadlock. */
export function deliveriesOf(receptions: readonly Reception[], now_ms: number): readonly Delivery[] {
  const byKit = new Map<string, Delivery>();
  for (const reception of receptions) {
    const { kit_id, messages, cleared, faults } = reception;
    const delivery = byKit.get(kit_id) ?? {
      kit_id,
      messages: [],
      batches: [],
      historical: new Set<Message>(),
      cleared: [],
      refused: [],
      heard_ms: 0,
      vouched_ms: null,
      isLive: false,
      isPresent: false,
      isImported: false,
      isBorn: false,
    };
    byKit.set(kit_id, delivery);
    delivery.messages.push(...messages);
    if (reception.packed) delivery.batches.push({ body: reception.packed, messages });
    if (reception.historical) for (const message of messages) delivery.historical.add(message);
    delivery.cleared.push(...cleared);
    delivery.refused.push(...faults);
    delivery.heard_ms = Math.max(delivery.heard_ms, sentAt(reception, now_ms));
    if (isVouched(reception)) delivery.vouched_ms = now_ms;
    noteOrigin(delivery, reception);
  }
  return [...byKit.values()].sort((a, b) => (a.kit_id < b.kit_id ? -1 : 1));
}

function noteOrigin(delivery: Delivery, reception: Reception): void {
  const { messages, imported } = reception;
  delivery.isImported ||= imported === true;
  delivery.isBorn ||= holdsBirth(reception);
  delivery.isLive ||= isSentByKit(reception);
  delivery.isPresent ||= messages.length > 0 && (isSentByKit(reception) || isBornNow(reception));
}

/** What the kit's counters become when each message is new and valid, as nearly always. */
export function expectedOf({ kit_id, messages, heard_ms }: Delivery, keepsHistory: boolean): Count {
  const numbered = messages.filter((message) => !isState(message));
  const kept = keepsHistory
    ? numbered.filter(({ refused, isOwn }) => refused === undefined && isOwn !== true)
    : [];
  const none = { duplicates: 0, refused: 0, vouched_ms: null };
  return { kit_id, received: numbered.length, heard_ms, landed: kept.length, ...none };
}

/**
 * Returns when the kit sent the reception, by the clock of the service. Retained messages and wills count with the time
 * they were written.
 */
function sentAt(reception: Reception, now_ms: number): number {
  const { messages } = reception;
  if (isSentByKit(reception) || isBornNow(reception)) return now_ms;
  return Math.min(now_ms, Math.max(0, ...messages.map(({ time_ms }) => time_ms)));
}

/** A retained birth: the kit is connected to the broker now, though it may have sent nothing for long. */
function isVouched(reception: Reception): boolean {
  return reception.retained && holdsBirth(reception);
}

function isBornNow(reception: Reception): boolean {
  return !reception.retained && holdsBirth(reception);
}

function holdsBirth({ messages }: Reception): boolean {
  return messages.some((message) => isState(message) && isBirth(message.data));
}

/** Returns whether the kit itself has sent this now: neither retained nor a will. */
function isSentByKit({ messages, retained }: Reception): boolean {
  return !retained && (messages.length === 0 || messages.some((message) => !isState(message)));
}

function isBirth(data: Json): boolean {
  return typeof data === 'object' && data !== null && Reflect.get(data, 'online') === true;
}

/** Presence is outside the sequence. */
export function isState({ channel }: Message): boolean {
  return channel.kind === 'state';
}

/** Whether it counts in its sequence and satisfies the limits of messages. */
export function isValidNumbered(message: Message): boolean {
  return !isState(message) && message.refused === undefined;
}
