/** Asks a name server over one network device. */
import { randomBytes } from 'node:crypto';
import { isIPv6 } from 'node:net';
import { openUdp } from '../../../src/platform/linux/bound-fd.ts';
import { canonicalIp, familyOf, ipv6Text } from '../../../src/platform/linux/socket-address.ts';
import { sleep } from '../../../src/platform/time.ts';
import { texts } from '../texts.ts';
import { isPublicIp } from '../../../src/platform/public-ip.ts';
import type { CheckOutcome, CheckWay, DnsCheck } from './api.ts';

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

// DNS messages (RFC 1035): the question for the addresses of a name, and the addresses in its answer. Pure.

const header_bytes = 12;
const class_in = 1;
const recursion_desired = 0x01_00;
const label_bytes_max = 63;
const name_bytes_max = 253;
/** Records of one answer that are looked at. */
const records_max = 64;

export const record_type = { a: 1, aaaa: 28 } as const;
type RecordType = (typeof record_type)[keyof typeof record_type];

/** Sentences of the response codes that occur; others are given as numbers. */
const response_codes: Readonly<Record<number, string>> = {
  1: 'FORMERR',
  2: 'SERVFAIL',
  3: 'NXDOMAIN',
  4: 'NOTIMP',
  5: 'REFUSED',
};

/** Whether it can be asked for: labels of letters, digits, hyphens and underscores. */
export function isDnsName(name: string): boolean {
  if (name.length > name_bytes_max) return false;
  return name.split('.').every((label) => /^[\w-]+$/u.test(label) && label.length <= label_bytes_max);
}

/** A question with recursion. `id` has 16 bits; `name` is one of `isDnsName`. */
export function dnsQuestion(id: number, name: string, type: RecordType): Buffer {
  const header = Buffer.alloc(header_bytes);
  header.writeUInt16BE(id, 0);
  header.writeUInt16BE(recursion_desired, 2);
  header.writeUInt16BE(1, 4);
  const labels = name.split('.').flatMap((label) => [Buffer.from([label.length]), Buffer.from(label)]);
  const end = Buffer.alloc(5);
  end.writeUInt16BE(type, 1);
  end.writeUInt16BE(class_in, 3);
  return Buffer.concat([header, ...labels, end]);
}

/** Interprets a datagram as the answer to a question; `foreign`: it is no answer to it. */
type DnsAnswer = { readonly addresses: readonly string[] } | { readonly refusal: string } | 'foreign';

/** Reads the addresses of the asked type, CNAMEs included, without following them further. */
export function readDnsAnswer(datagram: Buffer, question: Buffer): DnsAnswer {
  const asked = question.subarray(header_bytes);
  const question_end = header_bytes + asked.length;
  if (datagram.length < question_end || !datagram.subarray(0, 2).equals(question.subarray(0, 2)))
    return 'foreign';
  const flags = datagram.readUInt16BE(2);
  const isResponse = (flags & 0x80_00) !== 0;
  // Servers may answer with the letters in the other case.
  const echoed = datagram.subarray(header_bytes, question_end).toString('latin1').toLowerCase();
  if (!isResponse || echoed !== asked.toString('latin1').toLowerCase()) return 'foreign';
  const code = flags & 0xf;
  if (code !== 0) return { refusal: response_codes[code] ?? `code ${code}` };
  const type = question.readUInt16BE(question.length - 4);
  return { addresses: readAddresses(datagram, question_end, type) };
}

function readAddresses(datagram: Buffer, begin: number, type: number): readonly string[] {
  const addresses: string[] = [];
  const count = Math.min(records_max, datagram.readUInt16BE(6));
  let at: number | null = begin;
  for (let index = 0; index < count; index += 1) {
    at = nameEnd(datagram, at);
    if (at === null || at + 10 > datagram.length) break;
    const data_at: number = at + 10;
    const bytes = datagram.readUInt16BE(at + 8);
    if (data_at + bytes > datagram.length) break;
    if (datagram.readUInt16BE(at) === type && datagram.readUInt16BE(at + 2) === class_in) {
      const data = datagram.subarray(data_at, data_at + bytes);
      if (bytes === 4) addresses.push(data.join('.'));
      if (bytes === 16) addresses.push(ipv6Text(data));
    }
    at = data_at + bytes;
  }
  return addresses;
}

/** Where the name at `at` ends: after a zero length or a pointer; null when it is cut short. */
function nameEnd(datagram: Buffer, at: number): number | null {
  for (let next = at; next < datagram.length;) {
    const length = datagram[next] ?? 0;
    if (length === 0) return next + 1;
    if (length >= 0xc0) return next + 2;
    next += length + 1;
  }
  return null;
}

function typeFor(address: string): RecordType {
  return isIPv6(address) ? record_type.aaaa : record_type.a;
}
