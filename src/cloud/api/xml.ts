/** Texts and numbers in XML documents for readers that check them. */

const decimals = new Intl.NumberFormat('en', { useGrouping: false, maximumFractionDigits: 20 });

/** Without an exponent, which `xsd:decimal` does not have (OsmAnd#4664, jpx#151). */
export function decimal(number: number): string {
  return decimals.format(number);
}

/** What XML 1.0 cannot hold, such as a NUL in the name of a device, would make a whole document unreadable (section 2.2). */
const foreign = /[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu;

export function escaped(text: string): string {
  return text
    .replaceAll(foreign, '\uFFFD')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
