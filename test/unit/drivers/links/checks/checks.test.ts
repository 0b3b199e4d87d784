/** Checks without a network: options, messages of DNS, and what probes and checks say together. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { after } from '../../../../../drivers/links/checks/checker.ts';
import { dnsQuestion, readDnsAnswer, record_type } from '../../../../../drivers/links/checks/dns.ts';
import { linkChecks } from '../../../../../drivers/links/options.ts';
import { joined } from '../../../../../drivers/links/probing.ts';
import type { ProbeReading } from '../../../../../drivers/links/probe/course.ts';
import { texts } from '../../../../../drivers/links/texts.ts';
import { forAll } from '../../../../support/for-all.ts';

const start = { passed: null, passed_ms: null, asked_ms: null, failing_since_ms: null, reason: null };
const probe: ProbeReading = {
  reachable: true,
  since_ms: 1_000,
  silent_ms: null,
  latency_ms: 40,
  jitter_ms: 1,
  packet_loss_pct: 0,
  method: 'icmp',
  reason: null,
  decided_by: 'probes',
  note: null,
};

describe('The verdict of checks', () => {
  it('fails with the second failed round in a row, and passes with the first that passes', () => {
    const one = after(start, { begun_ms: 10, reason: 'no', failures: 1 });
    expect(one).toEqual({ ...start, asked_ms: 10, failing_since_ms: 10, reason: 'no' });
    const two = after(one, { begun_ms: 20, reason: 'still no', failures: 2 });
    expect(two).toEqual({ ...one, passed: false, asked_ms: 20, reason: 'still no' });
    const passed = { ...start, passed: true, passed_ms: 30, asked_ms: 30 };
    expect(after(two, { begun_ms: 30, reason: null, failures: 0 })).toEqual(passed);
  });

  it('makes a link unreachable whose probes are answered, from the first failure on', () => {
    const check = { ...start, passed: false, asked_ms: 3_000, failing_since_ms: 2_000, reason: 'portal' };
    expect(joined(probe, check)).toMatchObject({
      reachable: false,
      since_ms: 2_000,
      packet_loss_pct: 100,
      latency_ms: null,
      reason: 'portal',
      decided_by: 'checks',
    });
    expect(joined(probe, { ...check, passed: null })).toBe(probe);
  });

  it('that failed while no probe was answered are no wrong answer until they fail again', () => {
    const check = { ...start, passed: false, asked_ms: 900, failing_since_ms: 100, reason: 'silent' };
    expect(joined(probe, check)).toMatchObject({ reachable: false, decided_by: 'probes', reason: 'silent' });
    expect(joined(probe, { ...check, asked_ms: 1_100 })).toMatchObject({ decided_by: 'checks' });
  });

  it('keeps a link reachable only by a round that began after the probes fell silent', () => {
    const silent = { ...probe, reachable: false, since_ms: 5_000, reason: 'no answer' };
    const check = { ...start, passed: true, passed_ms: 4_000, asked_ms: 4_000 };
    expect(joined(silent, check)).toBe(silent);
    expect(joined(silent, { ...check, passed_ms: 6_000 })).toMatchObject({
      reachable: true,
      note: texts.only_checks_answer,
    });
  });

  it('does not keep a dead link by a round between its last answer and its first silence', () => {
    const silent = { ...probe, reachable: false, since_ms: 5_000, silent_ms: 7_000, reason: 'no answer' };
    const check = { ...start, passed: true, passed_ms: 6_000, asked_ms: 6_000 };
    expect(joined(silent, check)).toBe(silent);
    expect(joined(silent, { ...check, passed_ms: 8_000 })).toMatchObject({ reachable: true });
  });
});

describe('Messages of DNS', () => {
  const question = dnsQuestion(7, 'probe.example.org', record_type.a);
  const answer = (flags: number, records: readonly Buffer[] = []): Buffer => {
    const message = Buffer.concat([question, ...records]);
    message.writeUInt16BE(flags, 2);
    message.writeUInt16BE(records.length, 6);
    return message;
  };
  const record = (type: number, data: readonly number[]): Buffer =>
    Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 60, 0, data.length, ...data]);

  it('are read past records of other types', () => {
    const records = [record(5, [1, 97, 0]), record(1, [192, 0, 2, 7]), record(1, [192, 0, 2, 8])];
    expect(readDnsAnswer(answer(0x8180, records), question)).toEqual({
      addresses: ['192.0.2.7', '192.0.2.8'],
    });
  });

  it('are answers only to the question that was asked', () => {
    expect(readDnsAnswer(answer(0x0100), question)).toBe('foreign');
    expect(readDnsAnswer(answer(0x8180), dnsQuestion(8, 'probe.example.org', record_type.a))).toBe('foreign');
    expect(readDnsAnswer(answer(0x8180), dnsQuestion(7, 'other.example.org', record_type.a))).toBe('foreign');
    expect(readDnsAnswer(answer(0x8183), question)).toEqual({ refusal: 'NXDOMAIN' });
  });

  it('never throw, whatever arrives', () => {
    const tail = fc.uint8Array({ maxLength: 80 });
    forAll(tail, fc.nat(200), (bytes, cut) => {
      const message = Buffer.concat([answer(0x8180, [record(1, [1, 2, 3, 4])]), bytes]);
      message.writeUInt16BE(9, 6);
      const read = readDnsAnswer(message.subarray(0, cut), question);
      expect(read === 'foreign' || 'addresses' in read).toBe(true);
    });
  });
});

describe('Options of checks', () => {
  const refusal = (list: readonly object[]) => {
    const read = linkChecks.safeParse({ list });
    return read.success ? null : JSON.stringify(read.error.issues);
  };
  const dns = { name: 'example.org', server: '192.0.2.53' };

  it('need two checks, an address for each name, a text where a portal may answer, and no login', () => {
    expect(refusal([{ url: 'http://192.0.2.1/' }, dns])).toBeNull();
    expect(refusal([dns])).toContain('at least two');
    expect(refusal([{ url: 'http://example.org/' }, dns])).toContain('resolver');
    const open = { url: 'http://192.0.2.1/', status: 200 };
    expect(refusal([open, dns])).toContain('portal');
    expect(refusal([{ ...open, body: 'ok' }, dns])).toBeNull();
    expect(refusal([{ ...open, url: 'https://192.0.2.1/' }, dns])).toBeNull();
    expect(refusal([{ url: 'http://example.org/', resolver: '192.0.2.53' }, dns])).toBeNull();
    expect(refusal([{ url: 'http://user:word@192.0.2.1/' }, dns])).toContain('without a login');
    expect(refusal([{ url: 'ftp://192.0.2.1/' }, dns])).toContain('must be an address');
    expect(refusal([{ ...dns, name: 'a b' }, dns])).toContain('host name');
    expect(refusal([{ ...dns, addresses: ['192.0.2.1', '2001:db8::1'] }, dns])).toContain('all IPv4');
  });
});
