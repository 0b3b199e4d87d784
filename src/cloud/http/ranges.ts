/** Bytes that a client may ask for in parts (RFC 9110, sections 13 and 14). */
import { z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { RequestProblem } from '../api/problem.ts';
import { texts } from '../texts.ts';
import type { Env } from './context.ts';

export const rangeHeaders = z.object({
  range: z
    .string()
    .optional()
    .openapi({
      param: { name: 'range', in: 'header', description: 'one range of bytes', example: 'bytes=0-16383' },
    }),
});

interface Content {
  /** Strong. */
  readonly tag: string;
  readonly bytes: number;
  readonly content_type: string;
  readonly stream: (first: number, length: number) => ReadableStream<Uint8Array<ArrayBuffer>>;
}

/** Answers with all of it, with the part that `Range` names, or with 304. Throws `range-not-satisfiable`. */
export function sendBytes(c: Context<Env>, { tag, bytes, content_type, stream }: Content): Response {
  c.header('ETag', tag);
  c.header('Accept-Ranges', 'bytes');
  if (names(c.req.header('if-none-match'), tag)) return c.body(null, 304);
  // A part of another version would not fit to the parts that the client has (section 13.1.5).
  const since = c.req.header('if-range');
  const range = readRange(since === undefined || since === tag ? c.req.header('range') : undefined, bytes);
  if (range.kind === 'unsatisfiable') {
    throw new RequestProblem('range-not-satisfiable', texts.map_bytes(bytes), { size: bytes });
  }
  const [first, last] = range.kind === 'part' ? [range.first, range.last] : [0, bytes - 1];
  const length = last - first + 1;
  c.header('Content-Type', content_type);
  c.header('Content-Length', String(length));
  if (range.kind === 'part') c.header('Content-Range', `bytes ${first}-${last}/${bytes}`);
  const status = range.kind === 'part' ? 206 : 200;
  if (c.req.method === 'HEAD' || length === 0) return c.body(null, status);
  return c.body(stream(first, length), status);
}

/** Compares weakly, as section 13.1.2 has it. */
function names(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false;
  return header.trim() === '*' || [...header.matchAll(/"[^"]*"/gu)].some(([each]) => each === tag);
}

type ByteRange =
  /** The request names no part, or one in a form that may be ignored: the whole file is sent. */
  | { readonly kind: 'whole' }
  | { readonly kind: 'part'; readonly first: number; readonly last: number }
  | { readonly kind: 'unsatisfiable' };

const digits_max = 15;
const form = new RegExp(`^bytes=(\\d{0,${digits_max}})-(\\d{0,${digits_max}})$`, 'iu');

/** Reads a request for a part of a file (RFC 9110, section 14). Several parts in one request are answered with the whole file, which the standard allows. */
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
