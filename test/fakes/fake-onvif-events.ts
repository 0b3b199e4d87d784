/** The event service of the fake ONVIF camera: subscriptions that are pulled, and such that it calls. */
import { request } from 'node:http';
import type { FakeCameraSettings, FakeRequest } from './fake-onvif-camera.ts';
import { envelope, type Soap } from './fake-onvif-services.ts';

export interface FakeEvents {
  readonly operations: Readonly<Record<string, Soap>>;
  /** Subscriptions that live now. */
  readonly size: number;
  /** The camera ignores the time that a pull may wait, and answers at once. */
  isHasty: boolean;
  /** Spells its times without a zone, as some do. */
  spellTime: (at: Date) => string;
  /** Where subscriptions are said to be; the camera itself when undefined. */
  foreign_base: string | undefined;
  /** A state changes; it is told to all, and again when somebody asks. */
  set(topic: string, item: string, value: string, source?: string): void;
  /** Sends a notification as it stands. */
  send(notification: string): void;
  forgetAll(): void;
}

interface Subscriber {
  readonly queue: string[];
  readonly consumer: string | undefined;
  wake: (() => void) | undefined;
}

export function fakeEvents(base: () => string, settings: FakeCameraSettings): FakeEvents {
  const subscribers = new Map<string, Subscriber>();
  const properties = new Map<string, (operation: string) => string>();
  let last = 0;
  const now = (): Date => new Date(Date.now() + settings.skew_ms);
  const times = (ms: number): string =>
    `<wsnt:CurrentTime>${events.spellTime(now())}</wsnt:CurrentTime><wsnt:TerminationTime>${events.spellTime(new Date(now().getTime() + ms))}</wsnt:TerminationTime>`;
  const tell = (notification: string): void => {
    for (const subscriber of subscribers.values()) {
      if (subscriber.consumer === undefined) {
        subscriber.queue.push(notification);
        subscriber.wake?.();
      } else call(subscriber.consumer, `<wsnt:Notify>${notification}</wsnt:Notify>`, settings.prefix);
    }
  };
  const add = (consumer: string | undefined): string => {
    const id = String(++last);
    subscribers.set(id, { queue: [], consumer, wake: undefined });
    const reference = `<wsa:Address>${events.foreign_base ?? base()}/onvif/subscription/${id}?x=1</wsa:Address><wsa:ReferenceParameters><axis:SubscriptionId>${id}</axis:SubscriptionId></wsa:ReferenceParameters>`;
    return `<REFERENCE>${reference}</REFERENCE>${times(lifetime_ms)}`;
  };
  const find = ({ path, body }: FakeRequest): Subscriber | undefined => {
    const id = /subscription\/(\d+)\?x=1$/u.exec(path)?.[1] ?? '';
    // The reference parameter must come back in the header, in its namespace.
    const isMarked = new RegExp(
      `<axis:SubscriptionId [^>]*IsReferenceParameter="true"[^>]*>${id}<`,
      'u',
    ).test(body);
    return isMarked ? subscribers.get(id) : undefined;
  };
  const unknown = { fault: 'wsrf-rw:ResourceUnknownFault', reason: 'no such subscription' };
  const events: FakeEvents = {
    isHasty: false,
    foreign_base: undefined,
    spellTime: (at) => at.toISOString(),
    get size() {
      return subscribers.size;
    },
    set(topic, item, value, source = 'VS0') {
      const make = (operation: string): string =>
        `<wsnt:NotificationMessage><wsnt:Topic Dialect="http://www.onvif.org/ver10/tev/topicExpression/ConcreteSet">${topic}</wsnt:Topic><wsnt:Message><tt:Message UtcTime="2001-01-01T00:00:00Z" PropertyOperation="${operation}">` +
        `<tt:Source><tt:SimpleItem Name="VideoSourceToken" Value="${source}"/></tt:Source><tt:Data><tt:SimpleItem Name="${item}" Value="${value}"/></tt:Data></tt:Message></wsnt:Message></wsnt:NotificationMessage>`;
      properties.set(`${topic} ${source}`, make);
      tell(make('Changed'));
    },
    send: tell,
    forgetAll() {
      for (const { wake } of subscribers.values()) wake?.();
      subscribers.clear();
      properties.clear();
    },
    operations: {
      CreatePullPointSubscription: () => {
        const answer = add(undefined).replaceAll('REFERENCE', 'tev:SubscriptionReference');
        return `<tev:CreatePullPointSubscriptionResponse>${answer}</tev:CreatePullPointSubscriptionResponse>`;
      },
      Subscribe: ({ body }) => {
        const consumer = /Address>([^<]*)</u.exec(body)?.[1];
        const answer = add(consumer).replaceAll('REFERENCE', 'wsnt:SubscriptionReference');
        return `<wsnt:SubscribeResponse>${answer}</wsnt:SubscribeResponse>`;
      },
      PullMessages: async (asked, response) => {
        const subscriber = find(asked);
        if (!subscriber) return unknown;
        const seconds = Number(/Timeout>PT(\d+)S</u.exec(asked.body)?.[1]);
        if (subscriber.queue.length === 0 && !events.isHasty) {
          await new Promise<void>((resolve) => {
            const timer = setTimeout(resolve, seconds * 1_000);
            subscriber.wake = () => {
              clearTimeout(timer);
              resolve();
            };
            response.on('close', () => subscriber.wake?.());
          });
        }
        if (response.destroyed) return undefined;
        return `<tev:PullMessagesResponse>${times(lifetime_ms).replaceAll('wsnt:', 'tev:')}${subscriber.queue.splice(0).join('')}</tev:PullMessagesResponse>`;
      },
      SetSynchronizationPoint: (asked) => {
        if (!find(asked)) return unknown;
        for (const make of properties.values()) tell(make('Initialized'));
        return '<tev:SetSynchronizationPointResponse/>';
      },
      Renew: (asked) =>
        find(asked) ? `<wsnt:RenewResponse>${times(lifetime_ms)}</wsnt:RenewResponse>` : unknown,
      Unsubscribe: (asked) => {
        const subscriber = find(asked);
        for (const [id, each] of subscribers) if (each === subscriber) subscribers.delete(id);
        return subscriber ? '<wsnt:UnsubscribeResponse/>' : unknown;
      },
    },
  };
  return events;
}

const lifetime_ms = 180_000;

function call(url: string, body: string, prefix: string): void {
  const sent = request(url, { method: 'POST' }, (response) => response.resume());
  sent.on('error', () => undefined);
  sent.end(envelope(body, prefix));
}
