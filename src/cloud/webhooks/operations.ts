/** The operations on webhooks, independent of the transport. Every method throws `RequestProblem` when it rejects a request. */
import { randomBytes, randomUUID } from 'node:crypto';
import type { z } from 'zod';
import { jsonObject } from '../../contract/json.ts';
import type { Principal } from '../principal.ts';
import { RequestProblem } from '../api/problem.ts';
import { iso } from '../api/views.ts';
import {
  type changeWebhook,
  type createdWebhook,
  type createWebhook,
  type deadLetterList,
  type tested,
  type WebhookResource,
  type webhookSecret,
  webhookTypes,
  isWebhookType,
  old_secret_ms,
} from '../api/webhook-resources.ts';
import { AddressPolicy, type AddressRules } from './address-policy.ts';
import { Deliverer, type DelivererParts, sendOnce } from './deliverer.ts';
import { makeSecret, rotated, signedHeaders } from './signature.ts';
import { webhooks_max, type DeadQuery, type WebhookEdit, type WebhookStore } from './webhook-store.ts';
import { texts } from './texts.ts';
import { faultOf, type Webhook, type QueuedMessage } from './enqueue.ts';

/** A person waits for what comes of a test, and a page for ten seconds. */
const test_ms_max = 8_000;

export interface WebhookSettings
  extends AddressRules, Pick<DelivererParts, 'timeout_ms' | 'disable_after_ms' | 'pauses'> {
  /** In [0, 1); left out: that of the process. */
  readonly random?: (() => number) | undefined;
}

interface Around extends Pick<DelivererParts, 'log'> {
  readonly store: WebhookStore;
  readonly meter: { readonly webhook: NonNullable<DelivererParts['count']> } | undefined;
}

/** Builds the parts of webhooks from their settings. */
export function openWebhooks(
  { store, log, meter }: Around,
  { allow, allow_http, random = Math.random, ...settings }: WebhookSettings,
) {
  const shared = { store, policy: new AddressPolicy({ allow, allow_http }), now: Date.now, ...settings };
  const deliverer = new Deliverer({ ...shared, log, random, count: meter?.webhook });
  const operations = new WebhookOperations({ ...shared, wake: () => deliverer.wake() });
  return { operations, deliverer };
}

interface WebhookParts extends Pick<DelivererParts, 'policy' | 'timeout_ms' | 'now'> {
  readonly store: WebhookStore;
  /** Called when messages may have become due. */
  readonly wake: () => void;
}

export class WebhookOperations {
  readonly #parts: WebhookParts;

  constructor(parts: WebhookParts) {
    this.#parts = parts;
  }

  /** Those whose kits the key has. */
  async list(principal: Principal): Promise<readonly WebhookResource[]> {
    const all = await this.#parts.store.webhooks();
    return all.filter((each) => covers(principal, each.kits)).map((each) => this.#resourceOf(each));
  }

  async get(principal: Principal, webhook_id: string): Promise<WebhookResource> {
    return this.#resourceOf(await this.#webhook(principal, webhook_id));
  }

  async create(
    principal: Principal,
    body: z.output<typeof createWebhook>,
  ): Promise<z.output<typeof createdWebhook>> {
    const { store, now } = this.#parts;
    const { label, url, types = [...webhookTypes], kits = kitsOf(principal) } = body;
    const { assets = '*', severity_min = 'info' } = body;
    this.#check(principal, { url, kits });
    const secret = makeSecret();
    const webhook = {
      webhook_id: randomUUID(),
      label,
      url,
      types: [...new Set(types)],
      kits,
      assets,
      severity_min,
      key_id: principal.key_id,
      secrets: [{ text: secret, expires_ms: null }],
      created_ms: now(),
    };
    if (!(await store.addWebhook(webhook))) {
      throw new RequestProblem('conflict', texts.too_many(webhooks_max));
    }
    return { ...(await this.get(principal, webhook.webhook_id)), secret };
  }

  /** Another key than that of the registration takes it over. */
  async change(
    principal: Principal,
    webhook_id: string,
    { enabled, ...change }: z.output<typeof changeWebhook>,
  ): Promise<WebhookResource> {
    const { store } = this.#parts;
    await this.#webhook(principal, webhook_id);
    this.#check(principal, change);
    await store.changeWebhook(webhook_id, {
      ...change,
      key_id: principal.key_id,
      ...(enabled !== undefined && { disabled_reason: enabled ? null : texts.by_client }),
    });
    this.#parts.wake();
    return this.get(principal, webhook_id);
  }

  async remove(principal: Principal, webhook_id: string): Promise<void> {
    await this.#webhook(principal, webhook_id);
    await this.#parts.store.removeWebhook(webhook_id);
  }

  /** Makes a new secret; the one before signs beside it for a day. */
  async rotate(principal: Principal, webhook_id: string): Promise<z.output<typeof webhookSecret>> {
    const { store, now } = this.#parts;
    const { secrets } = await this.#webhook(principal, webhook_id);
    const now_ms = now();
    const made = rotated(secrets, now_ms);
    await store.changeWebhook(webhook_id, { secrets: made });
    return { secret: made[0]?.text ?? '', old_secret_expires_at: iso(now_ms + old_secret_ms) };
  }

  /** Sends the receiver a signed message of the type `test` now, and returns what came of it. Nothing is queued or counted. */
  async test(principal: Principal, webhook_id: string): Promise<z.output<typeof tested>> {
    const { policy, now } = this.#parts;
    const timeout_ms = Math.min(this.#parts.timeout_ms, test_ms_max);
    const { url, secrets } = await this.#webhook(principal, webhook_id);
    const now_ms = now();
    const id = `msg_${randomBytes(20).toString('base64url')}`;
    const body = JSON.stringify({ type: 'test', timestamp: iso(now_ms), data: { webhook_id } });
    const headers = signedHeaders({ id, body, now_ms }, secrets);
    const begun_ms = performance.now();
    const { signal } = new AbortController();
    const attempt = await sendOnce({ url, headers, body }, { policy, timeout_ms, signal });
    return {
      delivered: attempt.kind === 'delivered',
      ...('status' in attempt && attempt.status !== undefined && { status: attempt.status }),
      ...('reason' in attempt && { reason: attempt.reason }),
      duration_ms: Math.round(performance.now() - begun_ms),
    };
  }

  async dead(principal: Principal, query: DeadQuery): Promise<z.output<typeof deadLetterList>> {
    await this.#webhook(principal, query.webhook_id);
    const found = await this.#parts.store.deadMessages({ ...query, limit: query.limit + 1 });
    const messages = found.slice(0, query.limit);
    const last = found.length > query.limit ? messages.at(-1) : undefined;
    return { messages: messages.flatMap(deadResource), ...(last && { next_cursor: cursorOf(last) }) };
  }

  async replay(principal: Principal, webhook_id: string, ids: readonly string[] | '*'): Promise<number> {
    await this.#webhook(principal, webhook_id);
    const { store, now, wake } = this.#parts;
    const replayed = await store.replayDead(webhook_id, ids, now());
    wake();
    return replayed;
  }

  async purge(principal: Principal, webhook_id: string, ids: readonly string[] | '*'): Promise<number> {
    await this.#webhook(principal, webhook_id);
    return this.#parts.store.purgeDead(webhook_id, ids);
  }

  #resourceOf(webhook: Webhook): WebhookResource {
    return resourceOf(webhook, faultOf(webhook, this.#parts.now()));
  }

  /** A webhook that names kits which the key does not have does not exist for the key. */
  async #webhook(principal: Principal, webhook_id: string): Promise<Webhook> {
    const webhook = await this.#parts.store.webhook(webhook_id);
    if (webhook && covers(principal, webhook.kits)) return webhook;
    throw new RequestProblem('not-found', texts.no_webhook(webhook_id));
  }

  #check(principal: Principal, { url, kits }: Pick<WebhookEdit, 'url' | 'kits'>): void {
    const fault = url === undefined ? undefined : this.#parts.policy.faultOf(url);
    const errors = [
      ...(fault === undefined ? [] : [{ pointer: '#/url', detail: fault }]),
      ...(kits === undefined || covers(principal, kits)
        ? []
        : [{ pointer: '#/kits', detail: texts.foreign_kits }]),
    ];
    if (errors.length > 0) throw new RequestProblem('invalid-payload', texts.rejected, { errors });
  }
}

function kitsOf({ kits }: Principal): string[] | '*' {
  return kits === '*' ? kits : [...kits];
}

function covers(principal: Principal, kits: readonly string[] | '*'): boolean {
  if (principal.kits === '*') return true;
  return kits !== '*' && kits.every((each) => principal.kits.includes(each));
}

function resourceOf(webhook: Webhook, disabled_reason: string | null): WebhookResource {
  const { webhook_id: id, label, url, types, kits, failing_since_ms, last_fault } = webhook;
  const { delivered_ms, counts, assets, severity_min } = webhook;
  return {
    id,
    label,
    url,
    types: [...types],
    kits: kits === '*' ? kits : [...kits],
    assets: assets === '*' ? assets : [...assets],
    severity_min,
    status: disabled_reason === null ? 'enabled' : 'disabled',
    ...(disabled_reason !== null && { disabled_reason }),
    ...(failing_since_ms !== null && { failing_since: iso(failing_since_ms) }),
    ...(last_fault !== null && { last_fault }),
    ...(delivered_ms !== null && { last_delivered_at: iso(delivered_ms) }),
    created_at: iso(webhook.created_ms),
    counts,
  };
}

/** None for a type that the interface of this version does not have. */
function deadResource(message: QueuedMessage): z.output<typeof deadLetterList>['messages'] {
  const { id, type, kit_id, attempts, reason, body } = message;
  if (!isWebhookType(type)) return [];
  const resource = {
    id,
    type,
    kit_id,
    observed_at: iso(message.time_ms),
    queued_at: iso(message.queued_ms),
    dead_at: iso(message.dead_ms ?? 0),
    attempts,
    reason: reason ?? '',
    payload: jsonObject.parse(JSON.parse(body)),
  };
  return [resource];
}

function cursorOf({ dead_ms, id }: QueuedMessage): string {
  return `${dead_ms ?? 0}_${id}`;
}

/** Returns the place that a cursor names; undefined when it is none. */
export function readDeadCursor(text: string): DeadQuery['after'] {
  const [, dead_ms, id] = /^(\d{1,15})_(msg_[\w-]{27})$/u.exec(text) ?? [];
  return dead_ms === undefined || id === undefined ? undefined : { dead_ms: Number(dead_ms), id };
}
