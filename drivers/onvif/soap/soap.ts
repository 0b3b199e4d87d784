/** Operations of the ONVIF services, and the errors for cameras that fail them. */
import { deviceAddress } from '../../../src/driver/device-address.ts';
import { LoginRefused } from '../../../src/device/login-guard.ts';
import { DeviceRejected, DeviceUnreachable, RetryLater } from '../../../src/errors.ts';
import type { Connection, Failure, Reading, SoapOutcome, SoapRequest } from './soap-call.ts';
import type { Answered } from './transport.ts';
import { texts } from '../texts.ts';

export const namespaces = {
  device: 'http://www.onvif.org/ver10/device/wsdl',
  media: 'http://www.onvif.org/ver10/media/wsdl',
  media2: 'http://www.onvif.org/ver20/media/wsdl',
  ptz: 'http://www.onvif.org/ver20/ptz/wsdl',
  events: 'http://www.onvif.org/ver10/events/wsdl',
} as const;
export type ServiceName = keyof typeof namespaces;
export const schema_namespace = 'http://www.onvif.org/ver10/schema';

/** Most cameras answer within 100 ms; seconds when they write to flash or wake up. */
export const call_deadline_ms = 8_000;

/** Pause for a camera whose replies stall the reader. */
const stalled_pause_ms = 300_000;

/** The reply of a camera stalled the reader. */
export class StalledCamera extends RetryLater {
  constructor(message: string) {
    super(message, stalled_pause_ms);
  }
}

export type Login = SoapRequest['login'];
type Reply = Extract<SoapOutcome, { kind: 'reply' }>;

/** An operation without its login. */
export interface Operation extends Omit<SoapRequest, 'login'> {
  readonly deadline_ms?: number;
}

export interface FetchLimits {
  readonly deadline_ms: number;
  readonly bytes_max: number;
}

/** The line to one camera. Failures are outcomes: no call rejects. */
export interface Soap {
  readonly connection: Connection;
  /** Login method, determined at connection. */
  login: Login;
  call(operation: Operation): Promise<SoapOutcome>;
  /** Reads a message that the camera sent without a request. */
  parse(xml: string): Promise<Reading>;
  /** Fetches a file of the camera; `url` is one of `reachable`. */
  fetch(url: string, limits: FetchLimits): Promise<Answered | Failure>;
  /** Ends the calls under way; they and all later ones are interrupted. */
  close(): void;
}

/** An operation of a service: `inner` is XML in the service's namespace. */
export function operation(service: ServiceName, name: string, inner = ''): Operation {
  const namespace = namespaces[service];
  return { body: `<${name} xmlns="${namespace}">${inner}</${name}>`, action: `${namespace}/${name}` };
}

/** Returns the reply, or throws the error that decides how the connection is retried. */
export function expectReply(outcome: SoapOutcome, what: string): Reply {
  if (outcome.kind === 'reply') return outcome;
  // What fails before any request is no fault of this one.
  const isConnection = outcome.kind === 'failure' && outcome.why === 'unreachable';
  const sentence = isConnection ? describe(outcome) : `${what}: ${describe(outcome)}`;
  if (outcome.kind === 'fault' && outcome.code === 'NotAuthorized') throw new LoginRefused(sentence);
  if (outcome.kind === 'failure' && outcome.why === 'certificate') throw new DeviceRejected(sentence);
  const isStalled = outcome.kind === 'failure' && outcome.why === 'stalled';
  throw isStalled ? new StalledCamera(sentence) : new DeviceUnreachable(sentence);
}

/** What went wrong, as part of a sentence. */
export function describe(outcome: Exclude<SoapOutcome, { kind: 'reply' }>): string {
  if (outcome.kind === 'failure') return outcome.reason;
  if (outcome.code === 'NotAuthorized') {
    const words = outcome.reason === '' ? '' : ` (${outcome.reason})`;
    return texts.rights_rejected(words);
  }
  const code = outcome.code.startsWith('HTTP') ? '' : outcome.code;
  return texts.request_refused([code, outcome.reason].filter(Boolean).join(': '));
}

/**
 * Where a service is reached: on the configured host, whatever the camera reports. Undefined, and reported, when what it
 * reports is no address of a camera at all: a login is never sent there.
 */
export function reachable(
  address: string,
  { host, port, secure, peer_address, onRefused }: Connection,
): string | undefined {
  const own = { scheme: secure ? 'https' : 'http', host, port, ports: 'same_host', peer_address } as const;
  const found = deviceAddress(address, own);
  if ('url' in found) return found.url;
  onRefused?.(address, found.refused);
  return undefined;
}
