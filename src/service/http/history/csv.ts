/** Lines of CSV (RFC 4180). */

export function csvLine(values: readonly (string | number | null | undefined)[]): string {
  return values.map(cell).join(',');
}

/** A text that a spreadsheet would take for a formula is given a quotation mark before it. */
function cell(value: string | number | null | undefined): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') return String(value);
  const text = /^[=+\-@\t\r]/u.test(value) ? `'${value}` : value;
  return /[",\r\n]/u.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
