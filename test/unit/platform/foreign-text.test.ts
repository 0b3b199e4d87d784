/** Text of others where it comes in and where it leaves, with a corpus of what deceives a reader or a terminal. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cleanText, cleanTexts, printable, printableJson } from '../../../src/platform/foreign-text.ts';
import { corpus, isDeceptive } from '../../support/foreign-text.ts';

describe.each(Object.entries(corpus))('%s', (_, text) => {
  it('is cleaned to one harmless line', () => {
    expect(cleanText(text)).toContain('gate');
    expect(isDeceptive(cleanText(text))).toBe(false);
  });

  it('is shown by its codes', () => {
    expect(isDeceptive(printable(text))).toBe(false);
    expect(printable(text)).toContain('\\u{');
  });

  it('is the same value in JSON, and harmless there', () => {
    const json = printableJson(JSON.stringify({ text }, undefined, 2));
    expect(JSON.parse(json)).toEqual({ text });
    expect(isDeceptive(json, /\n/u)).toBe(false);
  });
});

it('keeps ordinary text of any language', () => {
  for (const text of [
    'Kamera Süd 2',
    'カメラ',
    'كاميرا',
    'प्रवेश द्वार',
    'Gate – north (2)',
    '🚁 Falcon',
    '❤️',
    '',
  ]) {
    expect(cleanText(text)).toBe(text);
    expect(printable(text)).toBe(text);
  }
});

it('joins a word that was split by invisible characters', () => {
  expect(cleanText('g\u200Ba\u00ADt\u{E0061}e')).toBe('gate');
});

it('cleans every text of a value and keeps the rest, and the very value when it is clean', () => {
  const clean = { a: ['x', { b: null }], n: 1 };
  expect(cleanTexts(clean)).toBe(clean);
  const dirty = { a: ['x\u001B[8m', { b: 'y\u202E' }], n: 1, big: 2n };
  expect(cleanTexts(dirty)).toEqual({ a: ['x [8m', { b: 'y' }], n: 1, big: 2n });
});

it('never keeps invisible characters, whatever the input', { tags: 'long' }, () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      expect(isDeceptive(cleanText(text))).toBe(false);
      expect(isDeceptive(printable(text))).toBe(false);
      expect(cleanText(cleanText(text))).toBe(cleanText(text));
      expect(JSON.parse(printableJson(JSON.stringify(text)))).toBe(text);
    }),
  );
});
