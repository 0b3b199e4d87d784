/** Decodes the bytes of a reply (XML 1.0, appendix F). Pure. */
import { isUtf8 } from 'node:buffer';

/** Where the declaration of an encoding stands. */
const head_bytes = 256;
const marks: readonly (readonly [start: readonly number[], encoding: string])[] = [
  [[0xff, 0xfe], 'utf-16le'],
  [[0xfe, 0xff], 'utf-16be'],
  // The sign `<` of a reply without a byte order mark.
  [[0x3c, 0x00], 'utf-16le'],
  [[0x00, 0x3c], 'utf-16be'],
];
/** Closes the envelope; what may follow is white space or NUL. */
const envelope_end = /<\/(?:[\w.-]{1,64}:)?Envelope\s{0,8}>[\s\0]{0,16}$/u;
/** Bytes at the end of a reply that `endsEnvelope` looks at. */
export const tail_bytes = 128;

/** What is UTF-8 is read as that, whatever it declares; anything else as it declares in its text, or in its header. */
export function replyText(bytes: Buffer, content_type: string | undefined): string {
  const [, wide] = marks.find(([start]) => start.every((byte, at) => bytes[at] === byte)) ?? [];
  if (wide !== undefined) return new TextDecoder(wide).decode(bytes);
  if (isUtf8(bytes)) return bytes.toString('utf8');
  const head = bytes.toString('latin1', 0, head_bytes);
  const declared = /\sencoding\s?=\s?["']([\w.-]{1,32})["']/u.exec(head)?.[1];
  const label = declared ?? /charset="?([\w.-]{1,32})/iu.exec(content_type ?? '')?.[1] ?? 'utf-8';
  try {
    return new TextDecoder(label).decode(bytes);
  } catch {
    return bytes.toString('utf8');
  }
}

/** Whether an envelope ends where these bytes end, whatever length was announced. */
export function endsEnvelope(tail: Buffer): boolean {
  return envelope_end.test(tail.toString('latin1'));
}
