/** SOAP envelopes: writes requests with their login by WS-Security, and reads replies. */
import { hash, randomBytes } from 'node:crypto';
import { messageOf } from '../../../src/platform/errors.ts';
import { failure, type Reading, type SoapOutcome } from './soap.ts';
import type { Answered } from './transport.ts';
import { escapeXml, find, parseXml, textAt, type XmlNode } from './xml.ts';
import { texts } from '../texts.ts';

export interface WsLogin {
  readonly username: string;
  readonly password: string;
  /** By the clock of the camera, milliseconds since 1970. */
  readonly now_ms: number;
}

const oasis = 'http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss';

export type SoapVersion = '1.1' | '1.2';
const envelopes = {
  '1.1': 'http://schemas.xmlsoap.org/soap/envelope/',
  '1.2': 'http://www.w3.org/2003/05/soap-envelope',
} as const;

/** `headers` and `body` are XML. The prefixes are part of the text that simple devices search for. */
export function writeEnvelope(
  body: string,
  headers = '',
  login?: WsLogin,
  version: SoapVersion = '1.2',
): string {
  return (
    `<s:Envelope xmlns:s="${envelopes[version]}" xmlns:a="http://www.w3.org/2005/08/addressing">` +
    `<s:Header>${login ? security(login) : ''}${headers}</s:Header>` +
    '<s:Body xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema">' +
    `${body}</s:Body></s:Envelope>`
  );
}

/** UsernameToken Profile 1.1, section 3.1: the digest of the password is over its UTF-8. */
function security({ username, password, now_ms }: WsLogin): string {
  const created = new Date(now_ms).toISOString();
  const nonce = randomBytes(16);
  const digest = hash('sha1', Buffer.concat([nonce, Buffer.from(`${created}${password}`, 'utf8')]), 'base64');
  return (
    `<Security s:mustUnderstand="1" xmlns="${oasis}-wssecurity-secext-1.0.xsd"><UsernameToken>` +
    `<Username>${escapeXml(username)}</Username>` +
    `<Password Type="${oasis}-username-token-profile-1.0#PasswordDigest">${digest}</Password>` +
    `<Nonce EncodingType="${oasis}-soap-message-security-1.0#Base64Binary">${nonce.toString('base64')}</Nonce>` +
    `<Created xmlns="${oasis}-wssecurity-utility-1.0.xsd">${created}</Created></UsernameToken></Security>`
  );
}

/** The SOAP body of an envelope; `malformed` for anything else. Never throws. */
export function readEnvelope(xml: string): Reading {
  try {
    const body = find(parseXml(xml), 'envelope', 'body');
    if (body) return { kind: 'read', body };
    return failure('malformed', texts.reply_unread(texts.no_envelope));
  } catch (error) {
    return failure('malformed', texts.reply_unread(messageOf(error)));
  }
}

/** What an answer says about its request; `raw`: with the text of the reply. */
export function outcomeOf(
  { status, text, local_address }: Pick<Answered, 'status' | 'local_address'> & { readonly text: string },
  raw: boolean,
): SoapOutcome {
  const reading: Reading = text.trim() === '' ? failure('malformed', texts.reply_empty) : readEnvelope(text);
  // A login page or an empty answer with an error status is reported by its status.
  if (reading.kind === 'failure' && status < 400) return reading;
  const body = reading.kind === 'read' ? reading.body : undefined;
  const fault = find(body, 'fault');
  if (fault) return { kind: 'fault', status, ...faultOf(fault) };
  if (status === 401 || status === 403) {
    const reason = refusalOf(status, body ? '' : text);
    return { kind: 'fault', status, code: 'NotAuthorized', reason };
  }
  if (!body || status >= 400) {
    return { kind: 'fault', status, code: `HTTP${status}`, reason: `HTTP status ${status}` };
  }
  return { kind: 'reply', body, local_address, ...(raw ? { xml: text } : {}) };
}

/**
 * A locked account is refused for its password: each further attempt keeps it locked. Dahua says "The device is locked because of
 * entering wrong username/password many times" as a fault of the receiver (agsh/onvif#501), and "Wsse authorized time check failed"
 * (agsh/onvif#249).
 */
const login_words =
  /not ?authori[sz]ed|unauthori[sz]ed|authentication fail|authori[sz]ed time check|\b(?:account|user|device)\b[^.]{0,40}\block(?:ed)?\b/iu;

/**
 * WS-Security 1.1, section 12; and of cameras that do not know it at all: "The data in element 'Security' must be understood but cannot be
 * handled" (ispysoftware/iSpy#177, agsh/onvif#240, roleoroleo/yi-hack-MStar#64).
 */
const login_codes =
  /^(?:Failed(?:Authentication|Check)|InvalidSecurity|UnsupportedSecurityToken|SecurityTokenUnavailable|MessageExpired|MustUnderstand)/u;

/** SOAP 1.2, section 5.4: subcodes nest, the innermost is the most specific. */
function faultOf(fault: XmlNode): { readonly code: string; readonly reason: string } {
  let at = find(fault, 'code');
  let code = textAt(at, 'value') ?? textAt(fault, 'faultcode') ?? 'unknown';
  while ((at = find(at, 'subcode'))) code = textAt(at, 'value') ?? code;
  const whole = textAt(fault, 'reason', 'text') ?? textAt(fault, 'faultstring') ?? '';
  const text = whole.slice(0, reason_chars_max);
  const plain = code.slice(code.indexOf(':') + 1);
  const isLogin = login_words.test(text);
  const known = isLogin || login_codes.test(plain) ? 'NotAuthorized' : plain;
  return { code: known, reason: withDetail(text, fault).slice(0, reason_chars_max) };
}
export const reason_chars_max = 300;
const details_max = 16;

/** Devices often put the real cause into the detail (SOAP 1.2, section 5.4.5), in vendor-specific elements. */
function withDetail(reason: string, fault: XmlNode): string {
  const found = textsIn(find(fault, 'detail')).slice(0, details_max);
  const texts = found.filter((text) => !reason.includes(text));
  const detail = [...new Set(texts)].join(', ');
  return [reason, detail].filter((part) => part !== '').join(': ');
}

/** A refusal may be XML that is no SOAP: a Hikvision sends `<lockStatus>lock</lockStatus><unlockTime>1800</unlockTime>` (ISAPI, userCheck). */
function refusalOf(status: number, text: string): string {
  return [texts.http_status(status), ...(/<html/iu.test(text) ? [] : wordsIn(text))].join(': ');
}

function wordsIn(text: string): readonly string[] {
  try {
    const root = Object.values(parseXml(text).children)[0]?.[0];
    const parts = Object.entries(root?.children ?? {}).map(
      ([name, [first]]) => `${name} ${first?.text ?? ''}`,
    );
    return [parts.slice(0, details_max).join(', ').slice(0, reason_chars_max)].filter((each) => each !== '');
  } catch {
    return [];
  }
}

function textsIn(node: XmlNode | undefined): readonly string[] {
  if (!node) return [];
  const own = node.text === '' ? [] : [node.text];
  return [...own, ...Object.values(node.children).flatMap((each) => each.flatMap(textsIn))];
}
