/**
 * Text that devices, brokers and the cloud have written: made harmless where it comes in, and made visible where it leaves to
 * a terminal or the journal. What no reader can see, or what moves a terminal's cursor, can forge what the reader sees.
 */
/**
 * Controls (C0, C1), separators of lines, formats (bidi overrides, zero width), lone surrogates, whatever is not drawn; but
 * not the two that choose between text and picture of the character before them.
 */
const unseen = /[[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{DI}]--[\uFE0E\uFE0F]]/v;
const unseen_all = new RegExp(unseen, 'gv');
/** Characters that separate words. */
const breaking_all = /[\p{Cc}\p{Zl}\p{Zp}]+/gu;

/** One line of text without anything that is not drawn. */
export function cleanText(text: string): string {
  if (!unseen.test(text)) return text;
  return text.replaceAll(breaking_all, ' ').replaceAll(unseen_all, '').replaceAll(/ {2,}/gu, ' ').trim();
}

/** The value with every text and key in it cleaned; the very same value when there is nothing to clean. */
export function cleanTexts<T>(value: T): T {
  return withTexts(value, cleanText);
}

/** The same, and no text in it has more than so many characters. */
export function cleanTextsWithin<T>(chars_max: number, value: T): T {
  return withTexts(value, (text) => cleanText(text.slice(0, chars_max)));
}

/** The same as `cleanTexts`, but what stands at this key belongs to a client and is handed back as it came. */
export function cleanTextsBut<T>(but: string, value: T): T {
  return withTexts(value, cleanText, but);
}

/** The value with every text in it fit for a terminal. */
export function printableTexts<T>(value: T): T {
  return withTexts(value, printable);
}

function withTexts<T>(value: T, change: (text: string) => string, but?: string): T;
function withTexts(value: unknown, change: (text: string) => string, but?: string): unknown {
  if (typeof value === 'string') return change(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const items: readonly unknown[] = value;
    const changed = items.map((item) => withTexts(item, change, but));
    return changed.some((item, at) => item !== items[at]) ? changed : items;
  }
  const before = Object.entries(value);
  const after = before.map(([key, item]: [string, unknown]) => {
    return [change(key), key === but ? item : withTexts(item, change, but)] as const;
  });
  const isSame = after.every(([key, item], at) => key === before[at]?.[0] && item === before[at]?.[1]);
  return isSame ? value : Object.fromEntries(after);
}

/** One line for a terminal or the journal: what would not be drawn is written as its code, such as `\\u{1b}`. */
export function printable(text: string): string {
  if (!unseen.test(text)) return text;
  return text.replaceAll(unseen_all, (char) => `\\u{${char.codePointAt(0)?.toString(16) ?? ''}}`);
}

/** The same for JSON, which stays the same value; its line breaks and indentation are left alone. */
export function printableJson(json: string): string {
  if (!unseen.test(json)) return json;
  return json.replaceAll(unseen_all, (char) => (char === '\n' ? char : escapedUnits(char)));
}

function escapedUnits(char: string): string {
  return Array.from({ length: char.length }, (_, at) => {
    const unit = char.charCodeAt(at).toString(16).padStart(4, '0');
    return `\\u${unit}`;
  }).join('');
}
