/** The reason codes of MQTT 5 (section 2.4) and the return codes of 3.1.1, in words, with what to do about each. */
import { cleanText } from '../platform/foreign-text.ts';

export interface Reason {
  readonly words: string;
  readonly remedy: string;
}

const log = 'read the log of the broker';
const report = 'report this with the log of the broker';
const wait = 'wait, or ask the operator of the broker';
const rules = "correct the broker's access rules for this client";
const move = 'ask the operator of the broker for its new address';

const reasons: Readonly<Record<number, Reason>> = {
  0x00: { words: 'normal disconnection', remedy: log },
  0x04: { words: 'disconnection with will message', remedy: log },
  0x10: { words: 'no matching subscribers', remedy: "check the cloud's subscriptions" },
  0x11: { words: 'no subscription existed', remedy: log },
  0x80: { words: 'unspecified error', remedy: log },
  0x81: { words: 'malformed packet', remedy: report },
  0x82: { words: 'protocol error', remedy: report },
  0x83: { words: 'implementation specific error', remedy: log },
  0x84: { words: 'unsupported protocol version', remedy: 'set broker.protocol to 3.1.1' },
  // eclipse-mosquitto/mosquitto#2309: 3.1.1 has no other code for it.
  0x85: {
    words: 'client identifier not valid',
    remedy:
      'allow this client id at the broker; in MQTT 3.1.1 brokers answer so, too, to a broker.keepalive_s above their limit',
  },
  0x86: { words: 'bad user name or password', remedy: 'correct the user name and the password' },
  0x87: { words: 'not authorized', remedy: rules },
  0x88: { words: 'server unavailable', remedy: wait },
  0x89: { words: 'server busy', remedy: wait },
  0x8a: { words: 'banned', remedy: 'ask the operator of the broker to lift the ban' },
  0x8b: { words: 'server shutting down', remedy: wait },
  0x8c: { words: 'bad authentication method', remedy: 'allow password or certificate login at the broker' },
  0x8d: { words: 'keep alive timeout', remedy: 'check the link to the broker' },
  0x8e: {
    words: 'session taken over by another client with the same client id',
    remedy: 'find it and stop it',
  },
  0x8f: { words: 'topic filter invalid', remedy: rules },
  0x90: { words: 'topic name invalid', remedy: rules },
  0x91: { words: 'packet identifier in use', remedy: report },
  0x92: { words: 'packet identifier not found', remedy: report },
  0x93: { words: 'receive maximum exceeded', remedy: report },
  0x94: { words: 'topic alias invalid', remedy: report },
  0x95: { words: 'packet too large', remedy: "raise the broker's packet size limit" },
  0x96: { words: 'message rate too high', remedy: "raise the broker's rate limit" },
  0x97: { words: 'quota exceeded', remedy: "raise the broker's quota" },
  0x98: { words: 'administrative action', remedy: 'ask the operator of the broker' },
  0x99: { words: 'payload format invalid', remedy: log },
  0x9a: { words: 'retain not supported', remedy: 'allow retained messages at the broker' },
  0x9b: { words: 'QoS not supported', remedy: 'allow QoS 1 at the broker' },
  0x9c: { words: 'use another server', remedy: move },
  0x9d: { words: 'server moved', remedy: move },
  0x9e: { words: 'shared subscriptions not supported', remedy: 'allow shared subscriptions at the broker' },
  0x9f: { words: 'connection rate exceeded', remedy: wait },
  0xa0: { words: 'maximum connect time', remedy: 'raise the connection time limit of the broker' },
  0xa1: { words: 'subscription identifiers not supported', remedy: report },
  0xa2: {
    words: 'wildcard subscriptions not supported',
    remedy: 'allow wildcard subscriptions at the broker',
  },
};

/** CONNACK of 3.1.1 (section 3.2.2.3) as MQTT 5 has it. */
const codes_of_311: Readonly<Record<number, number>> = { 1: 0x84, 2: 0x85, 3: 0x88, 4: 0x86, 5: 0x87 };

/** What a code of CONNACK, PUBACK, SUBACK or DISCONNECT means. */
export function reasonOf(code: number): Reason {
  return reasons[codeOfMqtt5(code)] ?? { words: 'unknown reason code', remedy: log };
}

/** The code of MQTT 5 for a code of either version. */
export function codeOfMqtt5(code: number): number {
  return codes_of_311[code] ?? code;
}

/** What a broker may add to a code. */
export interface Details {
  readonly reasonString?: string | undefined;
  readonly serverReference?: string | undefined;
}

const detail_chars_max = 200;

/** `not authorized (0x87): "no such tenant"`, and the other address that the broker names. */
export function codeInWords(code: number, details?: Details): string {
  const { reasonString, serverReference } = details ?? {};
  const detail = reasonString ? `: "${oneLine(reasonString)}"` : '';
  const redirect = serverReference ? `; the broker names ${oneLine(serverReference)}` : '';
  return `${reasonOf(code).words} (0x${code.toString(16).padStart(2, '0')})${detail}${redirect}`;
}

function oneLine(text: string): string {
  return cleanText(text.slice(0, detail_chars_max));
}
