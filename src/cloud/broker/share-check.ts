/**
 * Detects a shared subscription on which nothing arrives while kits publish: some brokers accept `$share` and deliver nothing on it, and
 * access rules may allow plain subscriptions only. While nothing arrives, it subscribes without `$share` for a moment, holds the first
 * message back, and looks whether it is stored: by this replica over the shared subscription, or by another one.
 */
import { contract_major, parseUp, readChannel } from '../../contract/topics.ts';
import { sleep } from '../../platform/time.ts';
import type { Delivered } from '../ingest/receiver.ts';
import { readMessage } from '../read-message.ts';
import { texts } from '../texts.ts';

/** What kits publish unretained, each message with one number. */
const peeked = ['telemetry', 'feed/#', 'event/#', 'task/#'].map((path) => `${contract_major}/+/up/${path}`);
const live_kinds: ReadonlySet<string> = new Set(['telemetry', 'feed', 'event', 'task', 'batch', 'drops']);

export interface ShareTimes {
  /** Without a message for so long, it looks. Half as long at least: replicas must not look at the same time. */
  readonly quiet_ms: number;
  /** For a message to come over the plain subscription. */
  readonly peek_ms: number;
  /** For that message to be stored. */
  readonly settle_ms: number;
}

export const share_times: ShareTimes = { quiet_ms: 60_000, peek_ms: 20_000, settle_ms: 15_000 };

export interface ShareDatabase {
  /** Whether the message with this number is stored, by whichever replica. */
  readonly isReceived: (kit_id: string, epoch: number, seq: number) => Promise<boolean>;
  /** Whether a kit has been heard of lately and counts as online. */
  readonly hasOnlineKits: () => Promise<boolean>;
}

export interface ShareCheckParts extends ShareDatabase {
  readonly share: string;
  readonly times: ShareTimes;
  readonly random: () => number;
  /** The fault with its remedy; undefined: there is none. */
  readonly report: (fault: string | undefined) => void;
}

/** The part of a session that it needs. */
export interface Subscriptions {
  readonly subscribe: (filter: string) => Promise<void>;
  readonly unsubscribe: (filter: string) => Promise<void>;
  /** A broker of MQTT 5 gives retained messages to every subscription. */
  readonly gives_retained: boolean;
}

type Held = Pick<Delivered, 'topic' | 'payload'>;

export class ShareCheck {
  readonly #parts: ShareCheckParts;
  #arrived = 0;
  #retained = 0;
  /** Set while a plain subscription is open. */
  #peek: PromiseWithResolvers<Held> | undefined;
  /** Ends the holding back of the message. */
  #release: Promise<void> = Promise.resolve();
  #hasFault = false;

  constructor(parts: ShareCheckParts) {
    this.#parts = parts;
  }

  /** Called with each message before it is stored; resolves when it may be. */
  async pass({ topic, payload, retained }: Delivered): Promise<void> {
    if (retained) this.#retained += 1;
    const channel = readChannel(parseUp(topic)?.channel ?? '');
    if (retained || !channel || !live_kinds.has(channel.kind)) return;
    const peek = this.#peek;
    if (!peek) {
      this.#arrived += 1;
      return;
    }
    if (channel.kind === 'batch' || channel.kind === 'drops') return;
    this.#peek = undefined;
    peek.resolve({ topic, payload });
    await this.#release;
  }

  /** Looks for as long as the session lasts. */
  async run(session: Subscriptions, signal: AbortSignal): Promise<void> {
    const { times, random } = this.#parts;
    this.#hasFault = false;
    this.#retained = 0;
    while (!signal.aborted && !this.#hasFault) {
      const before = this.#arrived;
      await sleep(times.quiet_ms * (0.5 + random() / 2), signal);
      if (signal.aborted) return;
      if (this.#arrived !== before) {
        // Only the shared subscription is open.
        this.#parts.report(undefined);
        continue;
      }
      // A lost connection or database: the next look is after them.
      await this.#look(session, signal).catch(() => undefined);
    }
  }

  async #look(session: Subscriptions, signal: AbortSignal): Promise<void> {
    const { times, share, report, hasOnlineKits } = this.#parts;
    const settled = Promise.withResolvers<undefined>();
    const peek = Promise.withResolvers<Held>();
    this.#release = settled.promise;
    this.#peek = peek;
    try {
      for (const filter of peeked) await session.subscribe(filter);
      const held = await Promise.race([peek.promise, sleep(times.peek_ms, signal).then(() => undefined)]);
      for (const filter of peeked) await session.unsubscribe(filter);
      if (signal.aborted) return;
      if (held) {
        const isDelivered = await this.#isStored(held, signal);
        if (isDelivered === undefined) return;
        report(isDelivered ? undefined : texts.share_silent(share));
        if (isDelivered) return;
        this.#hasFault = true;
        // Every replica stores everything then, which counts once.
        await session.subscribe(`${contract_major}/+/up/#`);
      } else if (session.gives_retained && this.#retained === 0 && (await hasOnlineKits())) {
        report(texts.nothing_arrives);
      }
    } finally {
      this.#peek = undefined;
      settled.resolve(undefined);
    }
  }

  /** Undefined: the database did not answer, or the session ended. */
  async #isStored({ topic, payload }: Held, signal: AbortSignal): Promise<boolean | undefined> {
    const { times, isReceived } = this.#parts;
    const { kit_id, messages } = readMessage(topic, payload) ?? { kit_id: '', messages: [] };
    const [message] = messages;
    if (!message) return undefined;
    const until_ms = performance.now() + times.settle_ms;
    while (!signal.aborted) {
      if (await isReceived(kit_id, message.epoch, message.seq)) return true;
      if (performance.now() > until_ms) return false;
      await sleep(times.settle_ms / 10, signal);
    }
    return undefined;
  }
}
