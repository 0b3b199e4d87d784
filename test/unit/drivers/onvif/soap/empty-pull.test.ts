/** The answer to a pull without events is recognised, and read as the parser reads it. */
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { envelope } from '../../../../../drivers/onvif/sim/services.ts';
import { emptyPull } from '../../../../../drivers/onvif/soap/empty-pull.ts';
import { readEnvelope } from '../../../../../drivers/onvif/soap/envelope.ts';

const times = (p: string): string =>
  `<${p}CurrentTime>2026-11-26T18:00:00Z</${p}CurrentTime>\n<${p}TerminationTime> 2026-11-26T18:03:00.5+01:00 </${p}TerminationTime>`;
const pulled = (inner = times('tev:')): string =>
  `<tev:PullMessagesResponse>${inner}</tev:PullMessagesResponse>`;
const soap = 'http://www.w3.org/2003/05/soap-envelope';
const header =
  '<E:Header><wsa5:MessageID>urn:uuid:1</wsa5:MessageID><wsa5:To a:mustUnderstand="1">x</wsa5:To><b/></E:Header>';

/** A comment counts for nothing, and is left to the parser. */
const asParsed = (xml: string) => readEnvelope(xml.replace('</', '<!-- --></'));

describe('An answer to a pull', () => {
  it.each([
    ['of the simulated camera', envelope(pulled(), 's')],
    [
      'with another prefix, a header and line breaks',
      `<?xml version="1.0"?>\n<E:Envelope xmlns:E='${soap}'>\n${header}\n<E:Body>${pulled()}</E:Body>\n</E:Envelope>\n`,
    ],
    [
      'without prefixes',
      `<Envelope xmlns="${soap}"><Header/><Body><PullMessagesResponse xmlns="http://www.onvif.org/ver10/events/wsdl">${times('')}</PullMessagesResponse></Body></Envelope>`,
    ],
  ])('%s without events is recognised, and read as the parser does', (_, xml) => {
    const body = emptyPull(xml);
    expect(body).toBeDefined();
    expect(asParsed(xml)).toEqual({ kind: 'read', body });
  });

  it.each([
    ['with an event', envelope(pulled(`${times('tev:')}<wsnt:NotificationMessage/>`), 's')],
    ['that is a fault', envelope('<s:Fault/>', 's')],
    ['with two answers', envelope(pulled() + pulled(), 's')],
    ['with something behind it', `${envelope(pulled(), 's')}<x/>`],
    ['with an attribute', envelope(pulled().replace('Response>', 'Response a="1">'), 's')],
    ['with another end', envelope(pulled(), 's').replace('</s:Body>', '</t:Body>')],
    ['with a reference', envelope(pulled(times('tev:').replace('18:03', '18&#58;03')), 's')],
    ['of another operation', envelope(pulled().replaceAll('PullMessages', 'Renew'), 's')],
    [
      'that is longer than any known one',
      envelope(pulled(), 's').replace('<s:Body>', `${' '.repeat(8_192)}<s:Body>`),
    ],
  ])('%s is left to the parser', (_, xml) => {
    expect(emptyPull(xml)).toBeUndefined();
  });

  it('is read as the parser does, or left to it, whatever the camera sends', () => {
    const whole = `<E:Envelope xmlns:E="${soap}">${header}<E:Body>${pulled()}</E:Body></E:Envelope>`;
    const piece = fc.constantFrom(
      '<',
      '>',
      '"',
      '</E:Body>',
      '<E:Body>',
      header,
      '<!--',
      ' xmlns:a="b"',
      '&',
      'x',
      times('tev:'),
    );
    const property = fc.property(fc.nat(whole.length), fc.nat(12), piece, (at, length, put) => {
      const xml = whole.slice(0, at) + put + whole.slice(at + length);
      const body = emptyPull(xml);
      const parsed = asParsed(xml);
      // The parser may refuse what is wrong within a header.
      const isLeft = body === undefined || parsed.kind !== 'read';
      expect(isLeft || isDeepStrictEqual(body, parsed.body)).toBe(true);
    });
    fc.assert(property);
  });
});
