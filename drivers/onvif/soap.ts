/** Operations of the ONVIF services, and what becomes of a camera that does not answer them. */
import { DeviceRejected, DeviceUnreachable } from '../../src/errors.ts';
import type { Connection, Reading, SoapOutcome, SoapRequest } from './soap-call.ts';

export const namespaces = {
  device: 'http://www.onvif.org/ver10/device/wsdl',
  media: 'http://www.onvif.org/ver10/media/wsdl',
  media2: 'http://www.onvif.org/ver20/media/wsdl',
  ptz: 'http://www.onvif.org/ver20/ptz/wsdl',
  events: 'http://www.onvif.org/ver10/events/wsdl',
} as const;
export type ServiceName = keyof typeof namespaces;
export const schema_namespace = 'http://www.onvif.org/ver10/schema';

/** Most cameras answer within 100 ms; those that write to flash or wake up take seconds. */
export const call_deadline_ms = 8_000;

/** It was heard, and it must not be asked again soon. */
export class StalledCamera extends DeviceUnreachable {}

export type Login = SoapRequest['login'];
type Reply = Extract<SoapOutcome, { kind: 'reply' }>;

/** An operation without its login. */
export interface Operation extends Omit<SoapRequest, 'login'> {
  readonly deadline_ms?: number;
}

/** The line to one camera. What goes wrong is an outcome: nothing of it rejects. */
export interface Soap {
  readonly connection: Connection;
  /** How it wants to be logged into; found out when it was connected. */
  login: Login;
  call(operation: Operation): Promise<SoapOutcome>;
  /** Reads a message that the camera sent by itself. */
  parse(xml: string): Promise<Reading>;
  /** Ends the calls under way; they and all later ones are interrupted. */
  close(): void;
}

/** An operation of a service: `inner` is XML in the service's namespace. */
export function operation(service: ServiceName, name: string, inner = ''): Operation {
  const namespace = namespaces[service];
  return { body: `<${name} xmlns="${namespace}">${inner}</${name}>`, action: `${namespace}/${name}` };
}

/** The reply, or the error that says what the caller of a whole connection should do. */
export function expectReply(outcome: SoapOutcome, what: string): Reply {
  if (outcome.kind === 'reply') return outcome;
  const sentence = `${what}: ${describe(outcome)}`;
  const isFinal = outcome.kind === 'fault' ? outcome.code === 'NotAuthorized' : outcome.why === 'certificate';
  if (isFinal) throw new DeviceRejected(sentence);
  const isStalled = outcome.kind === 'failure' && outcome.why === 'stalled';
  throw isStalled ? new StalledCamera(sentence) : new DeviceUnreachable(sentence);
}

/** What went wrong, as part of a sentence. */
export function describe(outcome: Exclude<SoapOutcome, { kind: 'reply' }>): string {
  if (outcome.kind === 'failure') return outcome.reason;
  if (outcome.code === 'NotAuthorized') return 'it does not allow this to our user, or refuses the password';
  return `the camera refuses (${[outcome.code, outcome.reason].filter(Boolean).join(': ')})`;
}

/**
 * Where a service is reached. The camera's own word is taken for path and, on the same host, for the port; a foreign
 * host, a name that only the camera's network knows or a change to plain HTTP never gets our login.
 */
export function reachable(address: string, { host, port, secure }: Connection): string {
  const name = host.includes(':') ? `[${host}]` : host;
  const scheme = secure ? 'https:' : 'http:';
  const base = `${scheme}//${name}:${port}`;
  if (!URL.canParse(address, base)) return base;
  const told = new URL(address, base);
  const told_port = told.port === '' ? defaultPort(told.protocol) : told.port;
  const isSame = told.protocol === scheme && told.hostname.toLowerCase() === name.toLowerCase();
  return `${scheme}//${name}:${isSame ? told_port : port}${told.pathname}${told.search}`;
}

function defaultPort(protocol: string): string {
  return protocol === 'https:' ? '443' : '80';
}
