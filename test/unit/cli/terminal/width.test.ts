/** Columns of texts on a terminal. */
import { styleText } from 'node:util';
import { describe, expect, it, test } from 'vitest';
import { cut, fold, padTo, widthOf } from '../../../../src/cli/terminal/width.ts';

const red = styleText('red', 'red', { validateStream: false });

test.each([
  ['gate', 4],
  ['', 0],
  ['Zürich', 6],
  ['Zu\u0308rich', 6],
  ['日本', 4],
  ['한국', 4],
  ['ｶﾒﾗ', 3],
  ['（）', 4],
  ['🚁', 2],
  ['❤\uFE0F', 2],
  ['…', 1],
  [red, 3],
])('%j takes %i columns', (text, columns) => {
  expect(widthOf(text)).toBe(columns);
});

test.each([
  ['fits', 4, 'fits'],
  ['too long', 4, 'too…'],
  ['日本日本', 5, '日本…'],
  ['日本日本', 4, '日…'],
  ['e\u0301e\u0301e\u0301', 2, 'e\u0301…'],
  ['anything', undefined, 'anything'],
  ['ab', 1, '…'],
  [`a ${red} dress`, 4, 'a \u001B[31mr…\u001B[39m'],
  [`${red} and ${red}`, 6, '\u001B[31mred\u001B[39m a…'],
  [styleText('bold', 'too long', { validateStream: false }), 4, '\u001B[1mtoo…\u001B[22m'],
  [`${red} dress`, 4, '\u001B[31mred\u001B[39m…'],
])('%j in %j columns is %j', (text, columns, shown) => {
  expect(cut(text, columns)).toBe(shown);
});

it('pads to a width and cuts longer text', () => {
  expect(padTo('日', 4)).toBe('日  ');
  expect(padTo('gate camera', 6)).toBe('gate …');
});

describe('fold', () => {
  it('breaks between words and indents what follows', () => {
    expect(fold('warn  disk: 3 MB free; free some space', 20, 6)).toEqual([
      'warn  disk: 3 MB',
      '      free; free',
      '      some space',
    ]);
  });

  it('keeps words longer than a line whole and short text unchanged', () => {
    expect(fold('see mqtts://broker.example.com now', 12, 2)).toEqual([
      'see',
      '  mqtts://broker.example.com',
      '  now',
    ]);
    expect(fold('a  b', 10, 2)).toEqual(['a  b']);
    expect(fold('a long line', undefined, 2)).toEqual(['a long line']);
  });
});
