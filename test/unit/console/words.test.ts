/** The sentences of the page in its languages. */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { sentence } from '../../../src/console/world/text.ts';

const folder = new URL('../../../src/console/words/', import.meta.url);
const load = async (file: string): Promise<Readonly<Record<string, Readonly<Record<string, unknown>>>>> =>
  (await import(new URL(file, folder).href)) as Readonly<Record<string, Readonly<Record<string, unknown>>>>;
const languages = readdirSync(folder).filter((file) => /^[a-z]{2}\.ts$/u.test(file));

/** Each id with the kind of its sentence: a text, or a function of so many parameters. */
function idsOf(words: unknown, prefix = ''): readonly string[] {
  if (typeof words === 'string') return [`${prefix} text`];
  if (typeof words === 'function') return [`${prefix} function`];
  return Object.entries(words as object).flatMap(([key, each]) => idsOf(each, `${prefix}.${key}`));
}

describe('The languages of the page', () => {
  it('are English and German', () => {
    expect(languages).toEqual(['de.ts', 'en.ts']);
  });

  it('have the same ids', async () => {
    const [de, en] = await Promise.all(languages.map(async (file) => load(file)));
    expect(idsOf(de?.['de']).toSorted()).toEqual(idsOf(en?.['en']).toSorted());
  });

  it('keep a number and its unit in one line', () => {
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) =>
      file.endsWith('.ts'),
    );
    const parts = files.map((file) => readFileSync(new URL(file, folder), 'utf8'));
    expect(parts.flatMap((text) => text.match(/.*\} (?:%|dBm?|GB|ms|Mb\/s).*/gu) ?? [])).toEqual([]);
  });

  it('leave no sentence empty', async () => {
    for (const file of languages) {
      const empty = JSON.stringify(Object.values(await load(file))).match(/"[^"]*":""/gu);
      expect(empty).toBeNull();
    }
  });

  it.each([
    [
      'the disk is full: new messages are kept in memory',
      'The disk is full: new messages are kept in memory',
    ],
    ['eth3 is offline', 'eth3 is offline'],
    ['onvif: the camera rejected the password', 'onvif: the camera rejected the password'],
    ['', ''],
  ])('begins a sentence with a capital letter, and no name: %j', (text, expected) => {
    expect(sentence(text)).toBe(expected);
  });
});
