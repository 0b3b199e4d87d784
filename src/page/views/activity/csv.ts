/** Saves rows as a CSV file (RFC 4180). */

/**
 * Quotes each field; a sign that a spreadsheet would run as a formula is kept from doing so, at the beginning and behind what
 * separates cells and rows in the spreadsheets of many languages, where quotation marks behind commas do not hold.
 */
export function csvText(rows: readonly (readonly string[])[]): string {
  const quote = (text: string) => {
    const parts = text.replaceAll(/([;\t\r\n]["' ]*)(?=[=+\-@＝＋－＠])/gu, "$1'");
    const mark = /^ *[=+\-@\t\r\n＝＋－＠]/u.test(parts) ? "'" : '';
    return `"${mark}${parts.replaceAll('"', '""')}"`;
  };
  return rows.map((row) => `${row.map(quote).join(',')}\r\n`).join('');
}

export function saveCsv(rows: readonly (readonly string[])[], file: string) {
  const url = URL.createObjectURL(new Blob([csvText(rows)], { type: 'text/csv;charset=utf-8' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = file;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
