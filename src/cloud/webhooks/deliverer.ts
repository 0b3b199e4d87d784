/** Delivers queued messages: at least once each, by one replica at a time, with limits for each receiver. */
import { randomBytes } from 'node:crypto';
import { messageOf, StorageUnavailable, systemReason } from '../../platform/errors.ts';
import { sleep } from '../../platform/time.ts';
import type { ServiceLog } from '../service-log.ts';
import type { AddressPolicy } from './address-policy.ts';
import { messagePause, type Pauses, receiverPause, usual_pauses } from './pauses.ts';
import { signedHeaders } from './signature.ts';
import { texts } from './texts.ts';
import type { Settled, Settlement, WebhookStore } from './webhook-store.ts';
import type { QueuedMessage, Webhook } from './enqueue.ts';
import { lookup as resolve, type LookupAddress } from 'node:dns';
import { type IncomingMessage, request as requestHttp, type RequestOptions } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { limitInterimAnswers } from '../../platform/interim-answers.ts';

/** Of a response, whose body means nothing. */
const response_bytes_max = 64 * 1024;
const header_bytes_max = 16 * 1024;

interface Delivery {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

interface SendParts {
  readonly policy: AddressPolicy;
  readonly timeout_ms: number;
  readonly signal: AbortSignal;
}

type Attempt =
  | { readonly kind: 'delivered'; readonly status: number }
  | {
      readonly kind: 'failed';
      readonly reason: string;
      /** Undefined: no answer. */
      readonly status?: number | undefined;
      /** `Retry-After`. */
      readonly asked_ms?: number | undefined;
      /** The receiver wants no more deliveries (410). */
      readonly gone?: boolean;
    }
  /** The signal aborted: it is not known whether the receiver has it. */
  | { readonly kind: 'interrupted' };

/** Redirects are not followed: they would lead past the check of the address. */
export async function sendOnce(
  delivery: Delivery,
  { policy, timeout_ms, signal }: SendParts,
): Promise<Attempt> {
  const timeout = AbortSignal.timeout(timeout_ms);
  const fault = policy.faultOf(delivery.url);
  if (fault !== undefined) return { kind: 'failed', reason: fault };
  try {
    return outcomeOf(await post(delivery, policy, AbortSignal.any([signal, timeout])));
  } catch (error) {
    if (signal.aborted) return { kind: 'interrupted' };
    const reason = timeout.aborted ? texts.no_answer(timeout_ms) : reasonOf(error);
    return { kind: 'failed', reason };
  }
}

async function post(
  { url, headers, body }: Delivery,
  policy: AddressPolicy,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const options: RequestOptions = {
    method: 'POST',
    agent: false,
    lookup: allowedOnly(policy),
    maxHeaderSize: header_bytes_max,
    signal,
    headers: {
      ...headers,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'user-agent': 'kit-connector',
    },
  };
  const request = url.startsWith('https:') ? requestHttps(url, options) : requestHttp(url, options);
  limitInterimAnswers(request);
  const response = await new Promise<IncomingMessage>((done, reject) => {
    request.once('response', done);
    request.on('error', reject);
    request.end(body);
  });
  await drain(response);
  return response;
}

/** Reads and forgets the body, up to its limit; the status counts, however the body ends. */
async function drain(response: IncomingMessage): Promise<void> {
  let bytes = 0;
  await new Promise<void>((done) => {
    response.once('close', done);
    // It ended early: the status is there.
    response.on('error', () => undefined);
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > response_bytes_max) response.destroy();
    });
  });
}

/** The parser of Node.js names what it expected; the receiver is what someone must look at. */
function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code === 'HPE_HEADER_OVERFLOW') return texts.headers_too_large(header_bytes_max);
  return code.startsWith('HPE_') ? texts.no_http : systemReason(error);
}

function outcomeOf({ statusCode: status = 0, headers }: IncomingMessage): Attempt {
  if (status >= 200 && status < 300) return { kind: 'delivered', status };
  const isMoved = status >= 300 && status < 400;
  const reason = isMoved ? texts.redirected(status) : texts.refused(status);
  return { kind: 'failed', reason, status, asked_ms: askedMs(headers), gone: status === 410 };
}

/** `Retry-After`: seconds, or a time by the clock of the receiver (acmesh-official/acme.sh#7201). */
function askedMs({ 'retry-after': text = '', date = '' }: IncomingMessage['headers']): number {
  if (/^\d{1,9}$/u.test(text)) return Number(text) * 1_000;
  const until_ms = timeOf(text);
  return until_ms === undefined ? 0 : Math.max(0, until_ms - (timeOf(date) ?? Date.now()));
}

/** `Date.parse` takes nearly anything. */
function timeOf(text: string): number | undefined {
  const isTime = /^\w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} GMT$/u.test(text);
  return isTime ? Date.parse(text) : undefined;
}

/** The connection is made to one of the addresses that were checked: a name that resolves differently later changes nothing. */
function allowedOnly(policy: AddressPolicy): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, found: LookupAddress[]) => {
      if (error) {
        callback(error, []);
        return;
      }
      const allowed = found.filter(({ address }) => isIP(address) !== 0 && policy.reaches(address));
      const [first] = allowed;
      if (!first) callback(new Error(texts.private_address(hostname)), []);
      else if (options.all === true) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
  };
}

/** Deliveries to one receiver at once; while it fails, one. */
const at_once_max = 4;
/** Interval of the search for messages that are due while none waits: for what another replica queued and left behind. What is queued here is searched for at once. */
const look_idle_ms = 30_000;
/** A claim ends after the timeout and this: then another replica delivers it. */
const lease_grace_ms = 20_000;

export interface DelivererParts {
  readonly store: Pick<WebhookStore, 'dueWebhooks' | 'nextDue' | 'claimMessages' | 'settleMessages'>;
  readonly log: ServiceLog;
  readonly policy: AddressPolicy;
  /** For one delivery, from the resolution of the name to the end of the response. */
  readonly timeout_ms: number;
  /** A receiver that fails for so long is disabled. */
  readonly disable_after_ms: number;
  readonly now: () => number;
  /** In [0, 1). */
  readonly random: () => number;
  /** Left out: the usual ones. */
  readonly pauses?: Pauses | undefined;
  /** Counts attempts; left out: nothing is counted. */
  readonly count?: ((outcome: 'delivered' | 'failed' | 'dead' | 'disabled') => void) | undefined;
}

export class Deliverer {
  readonly #parts: DelivererParts;
  readonly #running = new Map<string, Set<Promise<void>>>();
  /** Receivers whose failure was logged. */
  readonly #failing = new Set<string>();
  readonly #settling: Settling;
  #wake = new AbortController();
  #isLost = false;

  constructor(parts: DelivererParts) {
    this.#parts = parts;
    this.#settling = new Settling(parts.store);
  }

  /** Delivers until the signal aborts; resolves when every attempt has ended. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#wake = new AbortController();
      const { signal: woken } = this.#wake;
      const pause_ms = await this.#look(signal);
      await sleep(pause_ms, AbortSignal.any([signal, woken]));
    }
    for (const running of this.#running.values()) await Promise.all(running);
  }

  /** To be called when messages may have become due. */
  wake(): void {
    this.#wake.abort();
  }

  /** Starts what is due. Returns when to look again, unless it is woken before. */
  async #look(signal: AbortSignal): Promise<number> {
    const { store, now, log, pauses: { look_ms } = usual_pauses } = this.#parts;
    try {
      for (const webhook of await store.dueWebhooks(now())) await this.#start(webhook, signal);
      this.#isLost = false;
      const next_ms = await store.nextDue(now());
      if (next_ms === undefined) return look_idle_ms;
      return Math.min(look_idle_ms, Math.max(look_ms, next_ms - now()));
    } catch (error) {
      if (!this.#isLost) log.warn({ reason: messageOf(error) }, texts.log_queue_failed);
      this.#isLost = true;
      return look_ms;
    }
  }

  async #start(webhook: Webhook, signal: AbortSignal): Promise<void> {
    const { store, now, timeout_ms } = this.#parts;
    const { webhook_id, failures } = webhook;
    const running = this.#running.get(webhook_id) ?? new Set();
    const limit = (failures > 0 ? 1 : at_once_max) - running.size;
    if (limit <= 0 || signal.aborted) return;
    this.#running.set(webhook_id, running);
    const now_ms = now();
    const lease = randomBytes(8).toString('hex');
    const lease_ms = now_ms + timeout_ms + lease_grace_ms;
    for (const message of await store.claimMessages({ webhook_id, limit, now_ms, lease_ms, lease })) {
      const attempt = this.#deliver(webhook, message, signal)
        .then(async (outcome) => this.#settle(webhook, { webhook_id, id: message.id, lease, ...outcome }))
        .finally(() => {
          running.delete(attempt);
          if (running.size === 0) this.#running.delete(webhook_id);
          this.#wake.abort();
        });
      running.add(attempt);
    }
  }

  async #deliver(webhook: Webhook, message: QueuedMessage, signal: AbortSignal): Promise<Outcome> {
    const { now, policy, timeout_ms } = this.#parts;
    const { url, secrets, failures } = webhook;
    const { id, body, attempts } = message;
    const headers = signedHeaders({ id, body, now_ms: now() }, secrets);
    const attempt = await sendOnce({ url, headers, body }, { policy, timeout_ms, signal });
    const now_ms = now();
    if (attempt.kind === 'interrupted') return { kind: 'released' };
    if (attempt.kind === 'delivered') return { kind: 'delivered', now_ms };
    const { random, pauses, disable_after_ms } = this.#parts;
    const { reason, asked_ms, gone = false } = attempt;
    const pause_ms = messagePause(attempts, { random, asked_ms, pauses });
    const disable = gone
      ? { reason: texts.gone, failing_since_ms: now_ms }
      : { reason: texts.failing(disable_after_ms / 3_600_000), failing_since_ms: now_ms - disable_after_ms };
    return {
      kind: 'failed',
      now_ms,
      reason: pause_ms === undefined ? texts.gave_up(attempts, reason) : reason,
      retry_ms: pause_ms === undefined ? null : now_ms + pause_ms,
      pause_until_ms: now_ms + receiverPause(failures + 1, { random, asked_ms, pauses }),
      disable,
    };
  }

  async #settle(webhook: Webhook, settlement: Settlement): Promise<void> {
    try {
      const { disabled } = await this.#settling.settle(settlement);
      this.#note(webhook, settlement, disabled);
    } catch (error) {
      // The claim expires, and the message is delivered once more.
      const facts = { webhook: webhook.webhook_id, reason: messageOf(error) };
      this.#parts.log.warn(facts, texts.log_queue_failed);
    }
  }

  /** Counts the outcome and logs changes of state: the first failure and its end, a message that is given up, the alarm. */
  #note({ webhook_id, label, url }: Webhook, outcome: Settlement, disabled: boolean): void {
    const { log, count } = this.#parts;
    const facts = { webhook: webhook_id, label, host: new URL(url).host };
    if (outcome.kind === 'delivered') {
      count?.('delivered');
      if (this.#failing.delete(webhook_id)) log.info(facts, texts.log_restored);
    }
    if (outcome.kind !== 'failed') return;
    const { reason, retry_ms } = outcome;
    count?.(retry_ms === null ? 'dead' : 'failed');
    if (!this.#failing.has(webhook_id)) log.warn({ ...facts, reason }, texts.log_failing);
    this.#failing.add(webhook_id);
    if (retry_ms === null) log.warn({ ...facts, reason }, texts.log_dead);
    if (!disabled) return;
    count?.('disabled');
    log.error({ ...facts, reason: outcome.disable?.reason }, texts.log_disabled);
    this.#failing.delete(webhook_id);
  }
}

type WithoutPlace<T> = T extends unknown ? Omit<T, 'webhook_id' | 'id' | 'lease'> : never;
type Outcome = WithoutPlace<Settlement>;

/** Outcomes of one transaction. */
const settlements_max = 64;

interface Waiting {
  readonly settlement: Settlement;
  readonly resolve: (settled: Settled) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Stores outcomes of deliveries, one transaction at a time: 64 receivers have 256 deliveries at once, and each outcome in a transaction of
 * its own would take every connection of the database.
 */
export class Settling {
  readonly #store: Pick<WebhookStore, 'settleMessages'>;
  /** Of deliveries that have ended: as many at most as may run at once. */
  readonly #waiting: Waiting[] = [];
  #isRunning = false;

  constructor(store: Pick<WebhookStore, 'settleMessages'>) {
    this.#store = store;
  }

  /** Resolves when the outcome is stored, and returns whether the receiver was disabled by it. Rejects as the store does. */
  async settle(settlement: Settlement): Promise<Settled> {
    const { promise, resolve, reject } = Promise.withResolvers<Settled>();
    this.#waiting.push({ settlement, resolve, reject });
    if (!this.#isRunning) void this.#run();
    return promise;
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#waiting.length > 0) await this.#settleAll(this.#waiting.splice(0, settlements_max));
    this.#isRunning = false;
  }

  /** One outcome that the database refuses for good keeps no other one from being stored. */
  async #settleAll(some: readonly Waiting[]): Promise<void> {
    try {
      const settled = await this.#store.settleMessages(some.map(({ settlement }) => settlement));
      for (const [at, { resolve }] of some.entries()) resolve(settled[at] ?? { disabled: false });
    } catch (error) {
      const isRefused = !(error instanceof StorageUnavailable) && some.length > 1;
      if (isRefused) for (const each of some) await this.#settleAll([each]);
      else for (const { reject } of some) reject(error);
    }
  }
}
