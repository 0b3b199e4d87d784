/** Asks a name server over one network device. */
import { randomBytes } from 'node:crypto';
import { openUdp } from '../../../src/platform/linux/bound-udp.ts';
import { canonicalIp, familyOf } from '../../../src/platform/linux/socket-address.ts';
import { sleep } from '../../../src/platform/time.ts';
import { texts } from '../texts.ts';
import { isPublicIp } from '../../../src/platform/public-ip.ts';
import type { CheckOutcome, CheckWay, DnsCheck } from './api.ts';
import {
  type DnsAnswer,
  dnsQuestion,
  readDnsAnswer,
  record_type,
  type RecordType,
  typeFor,
} from './dns-message.ts';

const dns_port = 53;
/** Of an answer, in a sentence. */
const addresses_named_max = 3;
/** The question is repeated after this time: a datagram may be lost. */
const repeat_ms = 1_500;

/** Passes when the answer holds an expected address; without expected addresses, when it holds a public one. */
export async function checkDns(check: DnsCheck, way: CheckWay): Promise<CheckOutcome> {
  const [first] = check.addresses;
  const type = first === undefined ? record_type.a : typeFor(first);
  const answer = await askDns({ server: check.server, name: check.name, type }, way);
  if (answer === null) return texts.dns_silent(check.name, check.server);
  if ('refusal' in answer) return texts.dns_refused(check.name, check.server, answer.refusal);
  const expected = check.addresses.map(canonicalIp);
  const isExpected = (address: string): boolean =>
    expected.length > 0 ? expected.includes(address) : isPublicIp(address);
  if (answer.addresses.some((address) => isExpected(canonicalIp(address)))) return null;
  return texts.dns_unexpected(check.name, check.server, namedAddresses(answer.addresses));
}

/** The addresses of an answer for a sentence: a server may send dozens. */
export function namedAddresses(addresses: readonly string[]): string {
  if (addresses.length === 0) return texts.no_address;
  const named = addresses.slice(0, addresses_named_max).join(', ');
  const rest = addresses.length - addresses_named_max;
  return rest > 0 ? texts.and_more(named, rest) : named;
}

interface Question {
  readonly server: string;
  readonly name: string;
  readonly type: RecordType;
}

type Reply = Exclude<DnsAnswer, 'foreign'>;

/** The answer; null when none came within the time. Rejects when the device cannot be used. */
export async function askDns(
  { server, name, type }: Question,
  { device, timeout_ms, signal }: CheckWay,
): Promise<Reply | null> {
  const family = familyOf(server);
  if (family === null) return null;
  const socket = await openUdp({ device, family });
  const over = new AbortController();
  const question = dnsQuestion(randomBytes(2).readUInt16BE(0), name, type);
  let reply: Reply | null = null;
  socket.on('message', (datagram, from) => {
    if (canonicalIp(from.address) !== canonicalIp(server) || from.port !== dns_port) return;
    const answer = readDnsAnswer(datagram, question);
    if (answer === 'foreign') return;
    reply = answer;
    over.abort();
  });
  socket.on('error', () => over.abort());
  const ending = AbortSignal.any([signal, over.signal]);
  try {
    for (let left_ms = timeout_ms; left_ms > 0 && !ending.aborted; left_ms -= repeat_ms) {
      socket.send(question, dns_port, server, () => undefined);
      await sleep(Math.min(repeat_ms, left_ms), ending);
    }
  } finally {
    over.abort();
    socket.close();
  }
  return reply;
}
