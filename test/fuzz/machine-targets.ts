/** What the gateway itself and its network say: kernel messages, leases, STUN answers, files, log lines. */
import { parseForwarding } from '../../drivers/clients/lan.ts';
import { parseLeases } from '../../drivers/clients/leases.ts';
import { parseCpu } from '../../drivers/gateway/proc.ts';
import { dnsQuestion, readDnsAnswer, record_type } from '../../drivers/links/checks/dns.ts';
import { readBindingResponse } from '../../drivers/links/probe/public-addresses.ts';
import {
  decodeAddress,
  decodeDefaultRoute,
  decodeHostRoute,
  decodeRule,
  namesNexthop,
  nexthopPaths,
} from '../../drivers/links/routes/rtnetlink.ts';
import { parseSource } from '../../src/config/source.ts';
import { ConfigInvalid } from '../../src/errors.ts';
import { prose, readEntry } from '../../src/platform/log/entry.ts';
import { decodeNeighbour } from '../../src/platform/linux/arp-table.ts';
import { readMessages } from '../../src/platform/linux/netlink-message.ts';
import type { Target } from './engine.ts';
import { netlink } from './structures.ts';

const never = (): boolean => false;
const transaction_id = Buffer.alloc(12, 7);
const dns_question = dnsQuestion(7, 'a.example', record_type.aaaa);

export const machineTargets: readonly Target[] = [
  {
    name: 'netlink',
    read: (input) => {
      const bodies = readMessages(input).map(({ body }) => body);
      const pathsOf = nexthopPaths(bodies);
      for (const body of bodies) {
        decodeAddress(body);
        if (namesNexthop(body)) pathsOf(1);
        decodeDefaultRoute(body, pathsOf);
        decodeHostRoute(body);
        decodeRule(body);
        decodeNeighbour(body);
      }
    },
    allows: never,
    seeds: [netlinkMessage(20, 24), netlinkMessage(24, 60), netlinkMessage(28, 40)],
    dictionary: ['\u0008\u0000\u0001\u0000', '\u0014\u0000', '\u0008\u0000\u0004\u0000', '\u00ff\u00ff'],
    bytes_max: 4_096,
    make: netlink,
  },
  {
    name: 'bridge-table',
    read: (input) => parseForwarding(input, new Map([[1, null]])),
    allows: never,
    seeds: [Buffer.alloc(16, 1)],
    dictionary: [],
    bytes_max: 4_096,
  },
  {
    name: 'stun',
    read: (input) => readBindingResponse(input, transaction_id),
    allows: never,
    seeds: [stunResponse()],
    dictionary: ['\u0000\u0020\u0000\u0008', '\u0001\u0001', '\u0021\u0012\u00a4\u0042'],
    bytes_max: 1_500,
  },
  {
    name: 'dns-answers',
    read: (input) => readDnsAnswer(input, dns_question),
    allows: never,
    seeds: [dnsAnswer()],
    dictionary: ['\u00c0\u000c', '\u0000\u001c\u0000\u0001', '\u0000\u0010', '\u0000\u0005', '\u00ff\u00ff'],
    bytes_max: 4_096,
  },
  {
    name: 'dhcp-leases',
    read: (input) => parseLeases(input.toString()),
    allows: never,
    seeds: ['1795255200 aa:bb:cc:dd:ee:ff 192.0.2.7 laptop 01:aa:bb:cc:dd:ee:ff\nduid 00:01\n'],
    dictionary: [' ', '\n', '192.0.2.1', '2001:db8::1', '*', '\u0007', '\u202e'],
    bytes_max: 32 * 1024,
  },
  {
    name: 'proc-stat',
    read: (input) => parseCpu(input.toString()),
    allows: never,
    seeds: ['cpu  10 20 30 40 50 60 70 80 0 0\ncpu0 1 2 3 4\n'],
    dictionary: ['cpu', ' ', '\n', '18446744073709551615'],
    bytes_max: 4_096,
  },
  {
    name: 'config-yaml',
    read: (input) => parseSource('fuzz.yaml', input.toString()),
    allows: (error) => error instanceof ConfigInvalid,
    seeds: [
      'kit_id: 3f0c1f6e-52a4-4c0e-9d6b-1f2a7c9e4b10\ndrivers:\n  - driver: gateway\n    options: { interval_s: 5 }\n',
    ],
    dictionary: [
      ': ',
      '- ',
      '&a ',
      '*a',
      '<<: ',
      '!!',
      '|\n',
      '>\n',
      '{',
      '}',
      '[',
      ']',
      '#',
      '\n  ',
      '? ',
      '%YAML',
    ],
    bytes_max: 8_192,
  },
  {
    name: 'log-line',
    read: (input) => {
      const entry = readEntry(input.toString());
      return entry && prose(entry);
    },
    allows: never,
    seeds: [
      '{"level":"info","time":"2026-11-21T10:00:00.000Z","part":"uplink","held_s":4,"msg":"connected"}',
    ],
    dictionary: ['"level":', '"msg":', '"time":', '_s":', '_ms":', '{', '}', '[', '"', '\u001b', '\\u009b'],
    bytes_max: 8_192,
  },
];

/** A message of this type whose body counts up. */
function netlinkMessage(type: number, body_bytes: number): Buffer {
  const message = Buffer.from(Array.from({ length: 16 + body_bytes }, (_none, at) => at & 7));
  message.writeUInt32LE(message.length, 0);
  message.writeUInt16LE(type, 4);
  message.writeUInt16LE(8, 16 + Math.min(12, body_bytes - 4));
  return message;
}

function stunResponse(): Buffer {
  const header = Buffer.alloc(20);
  header.writeUInt16BE(0x0101, 0);
  header.writeUInt16BE(12, 2);
  header.writeUInt32BE(0x21_12_a4_42, 4);
  transaction_id.copy(header, 8);
  return Buffer.concat([header, Buffer.from('002000080001a147e112a643', 'hex')]);
}

/** An alias of the name, and the address of that. */
function dnsAnswer(): Buffer {
  const question = Buffer.from(dns_question);
  question.writeUInt16BE(0x81_80, 2);
  question.writeUInt16BE(2, 6);
  const alias = Buffer.from('c00c000500010000003c0004016bc00c', 'hex');
  const address = Buffer.from('c00c001c00010000003c001020010db8000000000000000000000001', 'hex');
  return Buffer.concat([question, alias, address]);
}
