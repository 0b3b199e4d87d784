/** Subscriptions to a camera's events (ONVIF Core section 9, WS-BaseNotification): create, renew, end. */
import { randomUUID } from 'node:crypto';
import { cameraTime as readTime } from '../soap/line.ts';
import {
  type SoapOutcome,
  describe,
  namespaces,
  type Operation,
  operation,
  reachable,
  type Soap,
} from '../soap/soap.ts';
import { escapeXml, everywhere, textAt, type XmlNode } from '../soap/xml.ts';
import { texts } from '../texts.ts';
import type { MemoryOf } from '../../../src/toolkit/device/device-memory.ts';

export interface Subscription {
  readonly url: string;
  /** As the camera reported it, for `To`. */
  readonly address: string;
  /** Reference parameters, returned with each request. */
  readonly parameters: string;
  readonly lifetime_s: number;
  /** The form of times that it accepts. */
  readonly form: TimeForm;
}

/** What ends a subscription that an earlier run has left. */
export type KeptSubscription = Pick<Subscription, 'address' | 'parameters'>;

/** Over restarts: cameras serve few subscriptions, and one that a power cut of the gateway has left blocks the next (onvif/specs#592). */
export type SubscriptionMemory = MemoryOf<{ readonly subscription?: KeptSubscription | undefined }>;

/** Some read PT3M as three seconds, hence seconds; some accept absolute times only; some neither. */
export type TimeForm = 'relative' | 'absolute' | 'none';
const forms: readonly TimeForm[] = ['relative', 'absolute', 'none'];

const notification = 'http://docs.oasis-open.org/wsn/b-2';
const notification_actions = 'http://docs.oasis-open.org/wsn/bw-2';
const lifetime_s = 180;
const lifetime_min_s = 5;
const renew_deadline_ms = 8_000;
const unsubscribe_deadline_ms = 1_000;
/** Reference parameters are returned with each request; longer ones are left out. */
const headers_chars_max = 4_096;
/** Answers to a subscription are a tenth of that. */
export const answer_chars_max = 32_768;

export interface EventService {
  readonly soap: Soap;
  readonly url: string;
  readonly memory: SubscriptionMemory;
}

/** Subscribes with the first form of time that the camera accepts. `consumer`: the address to call; left out for a pull. */
export async function subscribe(
  { soap, url, memory }: EventService,
  consumer?: string,
): Promise<Subscription | Exclude<SoapOutcome, { kind: 'reply' }>> {
  let outcome: SoapOutcome = { kind: 'failure', why: 'interrupted', reason: texts.nothing_sent };
  for (const form of forms) {
    const until = timeText(form, await cameraTime(soap, form));
    outcome = await soap.call({ ...creation(url, until, consumer), raw: true });
    if (outcome.kind === 'reply') {
      const made = read(soap, outcome.body, outcome.xml ?? '', { form, url });
      const { address, parameters } = made;
      void memory.change({ subscription: { address, parameters } });
      const seconds = secondsOf(outcome.body);
      const isMisread = form === 'relative' && seconds >= 0 && seconds < lifetime_min_s;
      return isMisread ? untilTime(soap, made) : made;
    }
    const isTimeless = outcome.kind === 'failure' || /NotAuthorized|NotSupported|HTTP404/u.test(outcome.code);
    if (isTimeless) return outcome;
  }
  return outcome;
}

/** Some misread a duration: the end of the subscription is given as a time, where they accept that. */
async function untilTime(soap: Soap, made: Subscription): Promise<Subscription> {
  const other = { ...made, form: 'absolute' } as const;
  const renewal = await renew(soap, other);
  return 'lifetime_s' in renewal ? { ...other, ...renewal } : made;
}

export async function pull(soap: Soap, subscription: Subscription, seconds: number, deadline_ms: number) {
  const inner = `<Timeout>PT${seconds}S</Timeout><MessageLimit>64</MessageLimit>`;
  const asked = operation('events', 'PullMessages', inner);
  const action = `${namespaces.events}/PullPointSubscription/PullMessagesRequest`;
  return soap.call({ ...addressed(asked, subscription, action), deadline_ms });
}

/** Asks for the state of every property to be sent again (ONVIF Core, section 9.5). */
export async function synchronise(soap: Soap, subscription: Subscription): Promise<void> {
  const asked = operation('events', 'SetSynchronizationPoint');
  const action = `${namespaces.events}/PullPointSubscription/SetSynchronizationPointRequest`;
  await soap.call(addressed(asked, subscription, action));
}

/** Renews; returns the lifetime in seconds, or why the camera refuses, which alone does not mean that it is lost. */
export async function renew(
  soap: Soap,
  subscription: Subscription,
): Promise<{ readonly lifetime_s: number } | { readonly refused: string }> {
  const until = timeText(
    subscription.form === 'none' ? 'relative' : subscription.form,
    await cameraTime(soap, subscription.form),
  );
  const body = `<Renew xmlns="${notification}"><TerminationTime>${until}</TerminationTime></Renew>`;
  const action = `${notification_actions}/SubscriptionManager/RenewRequest`;
  const outcome = await soap.call({
    ...addressed({ body, action }, subscription, action),
    deadline_ms: renew_deadline_ms,
  });
  if (outcome.kind !== 'reply') return { refused: describe(outcome) };
  return { lifetime_s: lifetimeOf(outcome.body) };
}

/** Ends the subscription that an earlier run has left, if any. */
export async function endKept(service: EventService): Promise<void> {
  const { soap, url, memory } = service;
  const kept = memory.facts.subscription;
  if (kept) await unsubscribe(service, { ...kept, url: reachable(kept.address, soap.connection) ?? url });
}

/** What was not answered is kept, and ended at the next start. */
export async function unsubscribe(
  { soap, memory }: EventService,
  subscription: Pick<Subscription, 'url' | 'address' | 'parameters'>,
): Promise<void> {
  const body = `<Unsubscribe xmlns="${notification}"/>`;
  const action = `${notification_actions}/SubscriptionManager/UnsubscribeRequest`;
  const outcome = await soap.call({
    ...addressed({ body, action }, subscription, action),
    deadline_ms: unsubscribe_deadline_ms,
  });
  if (outcome.kind !== 'failure') await memory.change({ subscription: undefined });
}

function creation(url: string, time: string | undefined, consumer: string | undefined): Operation {
  const initial = time === undefined ? '' : `<InitialTerminationTime>${time}</InitialTerminationTime>`;
  if (consumer === undefined) {
    const action = `${namespaces.events}/EventPortType/CreatePullPointSubscriptionRequest`;
    return { ...operation('events', 'CreatePullPointSubscription', initial), action, url };
  }
  const address = `<a:Address>${escapeXml(consumer)}</a:Address>`;
  const body = `<Subscribe xmlns="${notification}"><ConsumerReference>${address}</ConsumerReference>${initial}</Subscribe>`;
  const action = `${notification_actions}/NotificationProducer/SubscribeRequest`;
  // Some accept the subscription and answer with a fault where the message has no number (WS-Addressing 1.0, section 3.4).
  return addressed({ body, action }, { url, address: url, parameters: '' }, action);
}

/** Absolute times are in the camera's clock, which may be far from the gateway's. */
async function cameraTime(soap: Soap, form: TimeForm): Promise<number> {
  if (form !== 'absolute') return 0;
  const outcome = await soap.call(operation('device', 'GetSystemDateAndTime'));
  return (outcome.kind === 'reply' ? readTime(outcome.body) : undefined) ?? Date.now();
}

function timeText(form: TimeForm, camera_ms: number): string | undefined {
  if (form === 'none') return undefined;
  if (form === 'relative') return `PT${lifetime_s}S`;
  return new Date(camera_ms + lifetime_s * 1_000).toISOString().replace(/\.\d+Z$/u, 'Z');
}

function read(
  soap: Soap,
  body: XmlNode,
  xml: string,
  { form, url }: { readonly form: TimeForm; readonly url: string },
): Subscription {
  const reference = everywhere(body, 'subscriptionReference')[0];
  const address = textAt(reference, 'address') ?? url;
  return {
    url: reachable(address, soap.connection) ?? url,
    address,
    parameters: referenceParameters(xml),
    lifetime_s: lifetimeOf(body),
    form,
  };
}

/** Implausible values are replaced by the requested one. */
function lifetimeOf(body: XmlNode): number {
  const seconds = secondsOf(body);
  return seconds >= lifetime_min_s && seconds <= lifetime_s * 4 ? seconds : lifetime_s;
}

/** Between the camera's two times, in any format; NaN where one is missing. */
function secondsOf(body: XmlNode): number {
  const [now_ms = Number.NaN, end_ms = Number.NaN] = ['currentTime', 'terminationTime'].map((name) =>
    Date.parse(everywhere(body, name)[0]?.text ?? ''),
  );
  return (end_ms - now_ms) / 1_000;
}

/** WS-Addressing 1.0, section 2.1: what a request to a subscription carries in its header. */
function addressed(
  asked: Operation,
  { url, address, parameters }: Pick<Subscription, 'url' | 'address' | 'parameters'>,
  action: string,
): Operation {
  const headers = `<a:Action>${action}</a:Action><a:MessageID>urn:uuid:${randomUUID()}</a:MessageID><a:To>${escapeXml(address)}</a:To>${parameters}`;
  return { ...asked, url, action, headers };
}

/** Extracts the children of ReferenceParameters unchanged, with their namespaces. */
export function referenceParameters(answer: string): string {
  const xml = answer.slice(0, answer_chars_max);
  const inner =
    /<(?:[\w.-]{1,64}:)?ReferenceParameters(?:\s[^<>]{0,1000})?>([^]{0,4000}?)<\/(?:[\w.-]{1,64}:)?ReferenceParameters>/u
      .exec(xml)?.[1]
      ?.trim();
  if (!inner) return '';
  const before = xml.slice(0, xml.indexOf(inner));
  const known = new Map<string, string>();
  for (const [, name, value] of before.matchAll(
    /\s(xmlns(?::[\w.-]{1,64})?)\s?=\s?["']([^"'<>]{1,300})["']/gu,
  )) {
    if (name !== undefined && value !== undefined) known.set(name, value);
  }
  let headers = '';
  for (const element of topElements(inner)) {
    headers += withNamespaces(element, known);
    // Each of a thousand elements could name thousands of namespaces.
    if (headers.length > headers_chars_max) return '';
  }
  return headers;
}

/** The element with its mark and with the namespaces that were declared around it. */
function withNamespaces(element: string, known: ReadonlyMap<string, string>): string {
  const head = /^<[^<>]*>/u.exec(element)?.[0] ?? '';
  const missing = [...known].filter(([name]) => !head.includes(`${name}=`));
  const declared = missing.map(([name, value]) => ` ${name}="${value}"`).join('');
  const end = /\/?>$/u.exec(head)?.[0] ?? '>';
  // A separate prefix, since the camera may use "a" for something else.
  const mark = ' xmlns:kit="http://www.w3.org/2005/08/addressing" kit:IsReferenceParameter="true"';
  return `${head.slice(0, head.length - end.length)}${declared}${mark}${end}${element.slice(head.length)}`;
}

function topElements(xml: string): readonly string[] {
  const elements: string[] = [];
  let depth = 0;
  let start = 0;
  for (const match of xml.matchAll(/<(\/?)[^\s<>/!?][^<>]{0,1000}?(\/?)>/gu)) {
    if (depth === 0) start = match.index;
    if (match[1] === '/') depth -= 1;
    else if (match[2] !== '/') depth += 1;
    if (depth === 0) elements.push(xml.slice(start, match.index + match[0].length));
  }
  return elements;
}
