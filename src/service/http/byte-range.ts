/** Requests for a part of a file (RFC 9110, section 14). */

export type ByteRange =
  /** The request names no part, or one in a form that may be ignored: the whole file is sent. */
  | { readonly kind: 'whole' }
  | { readonly kind: 'part'; readonly first: number; readonly last: number }
  | { readonly kind: 'unsatisfiable' };

const digits_max = 15;
const form = new RegExp(`^bytes=(\\d{0,${digits_max}})-(\\d{0,${digits_max}})$`, 'iu');

/** Several parts in one request are answered with the whole file, which the standard allows. */
export function readRange(header: string | undefined, bytes: number): ByteRange {
  const [, first = '', last = ''] = form.exec(header?.trim() ?? '') ?? [];
  if (first === '' && last === '') return { kind: 'whole' };
  return first === '' ? suffix(Number(last), bytes) : from(Number(first), last, bytes);
}

/** The last bytes of the file. */
function suffix(wanted: number, bytes: number): ByteRange {
  const length = Math.min(wanted, bytes);
  return length === 0 ? { kind: 'unsatisfiable' } : { kind: 'part', first: bytes - length, last: bytes - 1 };
}

/** `last` empty: to the end of the file. */
function from(first: number, last: string, bytes: number): ByteRange {
  if (last !== '' && Number(last) < first) return { kind: 'whole' };
  if (first >= bytes) return { kind: 'unsatisfiable' };
  return { kind: 'part', first, last: last === '' ? bytes - 1 : Math.min(Number(last), bytes - 1) };
}
