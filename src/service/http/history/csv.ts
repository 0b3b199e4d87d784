/** Lines of CSV (RFC 4180). */

export function csvLine(values: readonly (string | number | null | undefined)[]): string {
  return values.map(cell).join(',');
}

/**
 * As OWASP advises against formulas: a text that a spreadsheet would run is given an apostrophe. So is the part behind a semicolon,
 * a tab or a line break: where semicolons separate cells, as in the spreadsheets of many languages, quotation marks of cells
 * behind commas do not hold the text together.
 */
function cell(value: string | number | null | undefined): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') return String(value);
  const parts = value.replaceAll(/([;\t\r\n]["' ]*)(?=[=+\-@＝＋－＠])/gu, "$1'");
  const text = /^ *[=+\-@\t\r\n＝＋－＠]/u.test(parts) ? `'${parts}` : parts;
  return /[",;\t\r\n]/u.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
