/** Envelopes: what replies may be, how long the worst of them takes, and the login that requests carry. */
import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { envelope } from '../../../../../drivers/onvif/sim/services.ts';
import { outcomeOf, readEnvelope, writeEnvelope } from '../../../../../drivers/onvif/soap/envelope.ts';
import { everywhere, find, parseXml, reply_bytes_max } from '../../../../../drivers/onvif/soap/xml.ts';
import { threadCpu_ms } from '../../../../fuzz/engine.ts';

it('refuses a document type and what nests too deep, without recursion', () => {
  expect(() => parseXml('<!DOCTYPE a [<!ENTITY b "c">]><a/>')).toThrow(/document type/u);
  expect(() => parseXml('<a>'.repeat(30_000))).toThrow(/too deep/u);
  for (const closing of ['<!--</a>-->', '<![CDATA[</a>]]>', '<?x </a>?>']) {
    expect(() => parseXml(`<a>${closing}`.repeat(100))).toThrow(/too deep/u);
  }
  expect(() => parseXml('<a b="/>">'.repeat(100))).toThrow(/too deep/u);
  expect(() => parseXml('<a b="</a>">'.repeat(100))).toThrow(/a tag that does not end/u);
  expect(() => parseXml('</a>'.repeat(100))).toThrow(/not open/u);
  expect(() => parseXml('<a></b>')).toThrow(/not open/u);
  expect(() => parseXml('<a><!-- ')).toThrow(/ends within/u);
  expect(find(parseXml('<a b="x>y"><![CDATA[1 < 2 & 3]]><!-- <b> --></a>'), 'a')).toEqual({
    text: '1 < 2 & 3',
    attributes: { b: 'x>y' },
    children: {},
  });
});

it('expands no entity but those of XML', () => {
  const body = '<e:Envelope><e:Body><a>&lt;&b;&#x41;&#0;&#1114112;</a></e:Body></e:Envelope>';
  expect(find(parseXml(body), 'Envelope', 'Body', 'a')?.text).toBe('<&b;A&#0;&#1114112;');
});

/** A reply of 1 MiB: this text as often as it fits. */
const filled = (text: string, before = '', after = ''): string =>
  before + text.repeat(Math.floor((reply_bytes_max - before.length - after.length) / text.length)) + after;

it.each([
  ['tags', filled('<b/>', '<a>', '</a>')],
  ['attributes', filled('b="" ', '<a ', '/>')],
  ['the names of namespaces', filled('xmlns', '<a ', '/>')],
  ['namespaces', filled(' xmlns:a="b"', '<a', '/>')],
  ['open elements', filled('<a>')],
  ['comments', filled('<!---->', '<a>', '</a>')],
  ['comments that do not end', filled('<!--')],
  ['literal text', filled('<![CDATA[]]>', '<a>', '</a>')],
  ['references', filled('&amp;', '<a>', '</a>')],
  ['spaces within a tag', filled(' ', '<a ')],
  ['a name', filled('a', '<')],
  ['quotes', filled("'", '<a b="')],
])('reads or refuses 1 MiB of %s in linear time', (_, xml) => {
  const began_ms = threadCpu_ms();
  readEnvelope(xml);
  // It takes 100 ms at most; anything quadratic takes minutes.
  expect(threadCpu_ms() - began_ms).toBeLessThan(1_000);
});

it('reads what a recorder with hundreds of profiles sends', () => {
  const many = '<Service><Namespace>urn:a</Namespace></Service>'.repeat(1_500);
  const reading = readEnvelope(envelope(`<GetServicesResponse>${many}</GetServicesResponse>`, 's'));
  expect(reading.kind === 'read' && everywhere(reading.body, 'service')).toHaveLength(1_500);
});

it('names the first details of a fault that has thousands', () => {
  const reasonOf = (text: string): string => {
    const outcome = outcomeOf({ status: 400, text, local_address: undefined }, false);
    return outcome.kind === 'fault' ? outcome.reason : '';
  };
  const details = Array.from({ length: 5_000 }, (_, at) => `<d>d${at}.</d>`).join('');
  const fault = `<s:Fault><s:Code><s:Value>s:Sender</s:Value></s:Code><s:Reason><s:Text>${'r'.repeat(400_000)}</s:Text></s:Reason><s:Detail>${details}</s:Detail></s:Fault>`;
  expect(reasonOf(envelope(fault, 's'))).toBe('r'.repeat(300));
  expect(reasonOf(envelope(fault.replace(/r{2,}/u, 'refused'), 's'))).toMatch(
    /^refused: d0\., d1\., .*d15\.$/u,
  );
});

it('carries the digest of a password over its UTF-8, and escapes the user name', () => {
  const login = { username: 'a&b', password: 'pä€', now_ms: 0 };
  const header = find(parseXml(writeEnvelope('<x/>', '', login)), 'Envelope', 'Header');
  const token = find(header, 'Security', 'UsernameToken');
  const text = (name: string): string => find(token, name)?.text ?? '';
  const hash = createHash('sha1')
    .update(Buffer.from(text('Nonce'), 'base64'))
    .update(text('Created'));
  expect(text('Password')).toBe(hash.update('pä€', 'utf8').digest('base64'));
  expect([text('Username'), text('Created')]).toEqual(['a&b', '1970-01-01T00:00:00.000Z']);
});
