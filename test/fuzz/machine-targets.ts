/** What the gateway's network says: leases, STUN and DNS answers, and the log lines that quote it. */
import { parseLeases } from '../../drivers/clients/clients.ts';
import { dnsQuestion, readDnsAnswer, record_type } from '../../drivers/links/checks/dns.ts';
import { readBindingResponse } from '../../drivers/links/probe/public-addresses.ts';
import { prose, readEntry } from '../../src/platform/log/entry.ts';
import type { Target } from './engine.ts';

const never = (): boolean => false;
const transaction_id = Buffer.alloc(12, 7);
const dns_question = dnsQuestion(7, 'a.example', record_type.aaaa);

export const machineTargets: readonly Target[] = [
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
