/** The event service of the simulated ONVIF camera: subscriptions that are pulled, and such that it calls. */
import { request } from 'node:http';
import { sleep } from '../../../src/platform/time.ts';
import { envelope, type Soap } from './services.ts';
import type { SimRequest, SimSettings } from './settings.ts';

interface Subscriber {
  readonly queue: string[];
  /** Where it is called; undefined: it pulls. */
  readonly consumer: string | undefined;
  wake: (() => void) | undefined;
}

const queue_max = 1_000;
const dialect = 'http://www.onvif.org/ver10/tev/topicExpression/ConcreteSet';
const unknown = { fault: 'wsrf-rw:ResourceUnknownFault', reason: 'no such subscription' };

export class SimEvents {
  /** How long a subscription lives unless it is renewed. */
  lifetime_ms = 180_000;
  /** The camera ignores the time that a pull may wait, and answers at once. */
  isHasty = false;
  /** Spells its times without a zone, as some do. */
  spellTime = (at: Date): string => at.toISOString();
  /** Closes the connection of a pull that has been idle for this time, as a Tapo does after 10 s. */
  idle_max_ms = Number.POSITIVE_INFINITY;
  /** Answers at the end of the time that a pull may wait alone, whatever happens meanwhile. */
  holdsEvents = false;
  /** Serves so many pull points at once. */
  pull_points_max = Number.POSITIVE_INFINITY;
  /** Reported address of subscriptions; the camera itself when undefined. `http://`: it has no host. */
  foreign_base: string | undefined;
  readonly operations: Readonly<Record<string, Soap>>;
  readonly #base: () => string;
  readonly #settings: SimSettings;
  readonly #subscribers = new Map<string, Subscriber>();
  /** How each property is reported, by topic and source. */
  readonly #properties = new Map<string, (operation: string) => string>();
  #last = 0;

  constructor(base: () => string, settings: SimSettings) {
    this.#base = base;
    this.#settings = settings;
    this.operations = {
      CreatePullPointSubscription: () => this.#create(),
      Subscribe: ({ body }) => this.#subscribe(body),
      PullMessages: async (asked, response) => this.#pull(asked, response),
      SetSynchronizationPoint: (asked) => this.#synchronise(asked),
      Renew: (asked) =>
        this.#find(asked) ? `<wsnt:RenewResponse>${this.#times()}</wsnt:RenewResponse>` : unknown,
      Unsubscribe: (asked) => this.#unsubscribe(asked),
    };
  }

  /** Subscriptions that live now. */
  get size(): number {
    return this.#subscribers.size;
  }

  /** Changes a state; sent to all subscriptions, and again on request. */
  set(topic: string, item: string, value: string, source = 'VS0'): void {
    const utc = this.holdsEvents
      ? new Date(Date.now() + this.#settings.skew_ms).toISOString()
      : '2001-01-01T00:00:00Z';
    const make = (operation: string): string =>
      `<wsnt:NotificationMessage><wsnt:Topic Dialect="${dialect}">${topic}</wsnt:Topic><wsnt:Message><tt:Message UtcTime="${utc}" PropertyOperation="${operation}">` +
      `<tt:Source><tt:SimpleItem Name="VideoSourceToken" Value="${source}"/></tt:Source><tt:Data><tt:SimpleItem Name="${item}" Value="${value}"/></tt:Data></tt:Message></wsnt:Message></wsnt:NotificationMessage>`;
    this.#properties.set(`${topic} ${source}`, make);
    this.send(make('Changed'));
  }

  /** Sends a notification as it stands. */
  send(notification: string): void {
    for (const subscriber of this.#subscribers.values()) {
      const { consumer, queue } = subscriber;
      if (consumer === undefined) {
        if (queue.length < queue_max) queue.push(notification);
        subscriber.wake?.();
      } else call(consumer, `<wsnt:Notify>${notification}</wsnt:Notify>`, this.#settings.prefix);
    }
  }

  forgetAll(): void {
    for (const { wake } of this.#subscribers.values()) wake?.();
    this.#subscribers.clear();
    this.#properties.clear();
  }

  #create() {
    const pulled = [...this.#subscribers.values()].filter(({ consumer }) => consumer === undefined);
    if (pulled.length >= this.pull_points_max) {
      return { fault: 'ter:InvalidArgVal', reason: 'Maximum number of pull points reached' };
    }
    const answer = this.#add(undefined, 'tev:SubscriptionReference');
    return `<tev:CreatePullPointSubscriptionResponse>${answer}</tev:CreatePullPointSubscriptionResponse>`;
  }

  #subscribe(body: string) {
    const consumer = /ConsumerReference>.*?Address>([^<]*)</u.exec(body)?.[1];
    // WS-Addressing 1.0, section 3.4: a request that wants a reply has a number.
    if (!/<(?:\w+:)?MessageID>[^<]+</u.test(body)) return { fault: 'ter:ActionFailed' };
    return `<wsnt:SubscribeResponse>${this.#add(consumer, 'wsnt:SubscriptionReference')}</wsnt:SubscribeResponse>`;
  }

  async #pull(asked: SimRequest, response: Parameters<Soap>[1]) {
    const subscriber = this.#find(asked);
    if (!subscriber) return unknown;
    const seconds = Number(/Timeout>PT(\d+)S</u.exec(asked.body)?.[1]);
    if ((subscriber.queue.length === 0 || this.holdsEvents) && !this.isHasty) {
      const waiting = new AbortController();
      subscriber.wake = () => this.holdsEvents || waiting.abort();
      response.on('close', () => waiting.abort());
      await sleep(Math.min(seconds * 1_000, this.idle_max_ms), waiting.signal);
      if (seconds * 1_000 > this.idle_max_ms && !waiting.signal.aborted) response.destroy();
    }
    if (response.destroyed) return undefined;
    const times = this.#times().replaceAll('wsnt:', 'tev:');
    return `<tev:PullMessagesResponse>${times}${subscriber.queue.splice(0).join('')}</tev:PullMessagesResponse>`;
  }

  #synchronise(asked: SimRequest) {
    // Of a media service: a key frame, of which a simulated stream has no other.
    if (/\/media2?$/u.test(asked.path)) return '<trt:SetSynchronizationPointResponse/>';
    if (!this.#find(asked)) return unknown;
    for (const make of this.#properties.values()) this.send(make('Initialized'));
    return '<tev:SetSynchronizationPointResponse/>';
  }

  #unsubscribe(asked: SimRequest) {
    const subscriber = this.#find(asked);
    for (const [id, each] of this.#subscribers) if (each === subscriber) this.#subscribers.delete(id);
    return subscriber ? '<wsnt:UnsubscribeResponse/>' : unknown;
  }

  #add(consumer: string | undefined, element: string): string {
    this.#last += 1;
    const id = String(this.#last);
    this.#subscribers.set(id, { queue: [], consumer, wake: undefined });
    const address = `<wsa:Address>${this.foreign_base ?? this.#base()}/onvif/subscription/${id}?x=1</wsa:Address>`;
    const parameters = `<wsa:ReferenceParameters><axis:SubscriptionId>${id}</axis:SubscriptionId></wsa:ReferenceParameters>`;
    return `<${element}>${address}${parameters}</${element}>${this.#times()}`;
  }

  #find({ path, body }: SimRequest): Subscriber | undefined {
    const id = /subscription\/(\d+)\?x=1$/u.exec(path)?.[1] ?? '';
    // The reference parameter must come back in the header, in its namespace.
    const marked = `<axis:SubscriptionId [^>]*IsReferenceParameter="true"[^>]*>${id}<`;
    return new RegExp(marked, 'u').test(body) ? this.#subscribers.get(id) : undefined;
  }

  #times(): string {
    const now_ms = Date.now() + this.#settings.skew_ms;
    const [now, end] = [now_ms, now_ms + this.lifetime_ms].map((ms) => this.spellTime(new Date(ms)));
    return `<wsnt:CurrentTime>${now}</wsnt:CurrentTime><wsnt:TerminationTime>${end}</wsnt:TerminationTime>`;
  }
}

function call(url: string, body: string, prefix: string): void {
  const sent = request(url, { method: 'POST' }, (response) => response.resume());
  sent.on('error', () => undefined);
  sent.end(envelope(body, prefix));
}
