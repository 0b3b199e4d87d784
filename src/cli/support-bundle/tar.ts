/** Writes a tar archive of small text files (POSIX.1-1988 ustar): headers of 512 bytes, contents padded to as much. Pure. */

export interface TarFile {
  /** Relative, at most 100 bytes. */
  readonly name: string;
  readonly text: string;
}

const block_bytes = 512;
const name_bytes_max = 100;
/** Readable and writable by its owner only. */
const mode = 0o600;

/** The bytes of the archive; two empty blocks end it. */
export function tarOf(files: readonly TarFile[], time_ms: number): Buffer {
  const blocks = files.flatMap(({ name, text }) => {
    const content = Buffer.from(text);
    const padding = (block_bytes - (content.length % block_bytes)) % block_bytes;
    return [headerOf(name, content.length, time_ms), content, Buffer.alloc(padding)];
  });
  return Buffer.concat([...blocks, Buffer.alloc(2 * block_bytes)]);
}

function headerOf(name: string, size: number, time_ms: number): Buffer {
  if (Buffer.byteLength(name) > name_bytes_max)
    throw new RangeError(`${name} is longer than an archive name may be`);
  const header = Buffer.alloc(block_bytes);
  const octal = (value: number, at: number, digits: number): number =>
    header.write(`${value.toString(8).padStart(digits, '0')}\0`, at, 'latin1');
  header.write(name, 0, 'utf8');
  octal(mode, 100, 7);
  octal(0, 108, 7);
  octal(0, 116, 7);
  octal(size, 124, 11);
  octal(Math.floor(time_ms / 1_000), 136, 11);
  // The checksum is computed with spaces in its own field.
  header.write('        ', 148, 'latin1');
  header.write('0', 156, 'latin1');
  header.write('ustar\x0000', 257, 'latin1');
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return header;
}
