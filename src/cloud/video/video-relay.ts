/**
 * The way of a viewer's offer to its kit, and of the answer back (WHEP): over the broker, never stored. An answer may come to another
 * replica than the one that waits for it.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { z } from 'zod';
import { firstFault } from '../../contract/first-fault.ts';
import { cleanText } from '../../platform/foreign-text.ts';
import { messageOf } from '../../platform/errors.ts';
import { within } from '../../platform/time.ts';
import { parseWhep } from '../../contract/topics.ts';
import { type WhepAnswer, whepAnswer, type WhepRequest } from '../../contract/whep.ts';
import { RequestProblem } from '../api/problem.ts';
import type { ServiceLog } from '../service-log.ts';
import { texts } from '../texts.ts';

/** The ways of offer and answer, and what the media server of the kit may take to start a stream. */
const answer_ms = 12_000;
/** Offers that wait for their answers. */
const waiting_max = 1_000;
const unavailable_retry_s = 10;
/** An answer with its JSON: two bytes of one character of SDP are rare. */
const answer_bytes_max = 80 * 1024;

/** Where viewers of the service find the video of a kit. */
export interface VideoSource {
  /** Resolves with the answer of the kit. Rejects with `RequestProblem`. */
  readonly watch: (kit_id: string, request: WhepRequest) => Promise<WhepAnswer>;
  /** The viewer has left. Rejects when the kit cannot be told. */
  readonly leave: (kit_id: string, request: WhepRequest) => Promise<void>;
}

export interface VideoRelayParts {
  /** Rejects when the kit certainly does not have it. */
  readonly send: (kit_id: string, request: WhepRequest) => Promise<void>;
  /** Gives an answer to the other replicas; undefined: there are none. */
  readonly pass: ((text: string) => Promise<void>) | undefined;
  readonly log: Pick<ServiceLog, 'warn'>;
}

const passed = z.object({ topic: z.string(), packed: z.base64() });

export class VideoRelay implements VideoSource {
  readonly #parts: VideoRelayParts;
  /** By kit and viewer. */
  readonly #waiting = new Map<string, (answer: WhepAnswer) => void>();

  constructor(parts: VideoRelayParts) {
    this.#parts = parts;
  }

  async watch(kit_id: string, request: WhepRequest): Promise<WhepAnswer> {
    if (this.#waiting.size >= waiting_max) throw unavailable(texts.too_many_offers);
    const key = keyOf(kit_id, request.id);
    const answered = Promise.withResolvers<WhepAnswer>();
    this.#waiting.set(key, answered.resolve);
    try {
      await this.#send(kit_id, request);
      const answer = await within(answer_ms, answered.promise);
      if (answer) return answer;
    } finally {
      this.#waiting.delete(key);
    }
    // It may have begun a stream for nobody.
    void this.leave(kit_id, { ...request, offer: null }).catch(() => undefined);
    throw new RequestProblem('no-answer', texts.kit_silent(answer_ms / 1_000));
  }

  async leave(kit_id: string, request: WhepRequest): Promise<void> {
    await this.#send(kit_id, request);
  }

  async #send(kit_id: string, request: WhepRequest): Promise<void> {
    try {
      await this.#parts.send(kit_id, request);
    } catch (error) {
      throw unavailable(texts.viewer_not_sent(messageOf(error)));
    }
  }

  /** Takes a message of `up/whep/{id}`. What nobody waits for, here or elsewhere, is of no use any more. */
  receive(topic: string, payload: Uint8Array): void {
    if (payload.length > answer_bytes_max || this.#take(topic, payload)) return;
    const packed = deflateRawSync(payload).toString('base64');
    void this.#parts.pass?.(JSON.stringify({ topic, packed })).catch((error: unknown) => {
      this.#parts.log.warn({ reason: messageOf(error) }, texts.log_answer_lost);
    });
  }

  /** Takes what another replica has passed on. */
  receivePassed(text: string): void {
    try {
      const { topic, packed } = passed.parse(JSON.parse(text));
      const limits = { maxOutputLength: answer_bytes_max };
      this.#take(topic, inflateRawSync(Buffer.from(packed, 'base64'), limits));
    } catch (error) {
      this.#parts.log.warn({ reason: messageOf(error) }, texts.log_answer_lost);
    }
  }

  /** False: no viewer waits for it here. */
  #take(topic: string, payload: Uint8Array): boolean {
    const { kit_id = '', id = '' } = parseWhep(topic) ?? {};
    const resolve = this.#waiting.get(keyOf(kit_id, id));
    if (!resolve) return false;
    resolve(answerOf(payload));
    return true;
  }
}

function answerOf(payload: Uint8Array): WhepAnswer {
  try {
    const answer = whepAnswer.parse(JSON.parse(new TextDecoder().decode(payload)));
    return 'refused' in answer ? { ...answer, reason: cleanText(answer.reason) } : answer;
  } catch (error) {
    const reason = error instanceof z.ZodError ? firstFault(error) : messageOf(error);
    return { refused: 'unavailable', reason: texts.answer_unreadable(reason) };
  }
}

function keyOf(kit_id: string, id: string): string {
  return `${kit_id.toLowerCase()} ${id}`;
}

function unavailable(reason: string): RequestProblem {
  return new RequestProblem('unavailable', reason, { retry_after_s: unavailable_retry_s });
}
