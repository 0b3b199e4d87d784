/** The first bytes of a database file, https://www.sqlite.org/fileformat.html section 1.3. */
import { page_bytes } from '../schema.ts';

const header_bytes = 100;
const write_version_at = 18;
const read_version_at = 19;
const change_counter_at = 24;
const page_count_at = 28;
const freelist_at = 32;
const version_valid_for_at = 92;

/**
 * Makes the header at the start of `bytes` fit a file of other length: recounts its pages and
 * marks none as free. Returns `bytes`.
 */
export function patchHeader(
  bytes: Buffer,
  {
    file_bytes = bytes.length,
    journal,
  }: { readonly file_bytes?: number; readonly journal: 'log' | 'rollback' },
): Buffer {
  if (bytes.length < header_bytes) return bytes;
  const version = journal === 'log' ? 2 : 1;
  bytes.writeUInt8(version, write_version_at);
  bytes.writeUInt8(version, read_version_at);
  bytes.writeUInt32BE(Math.floor(file_bytes / page_bytes), page_count_at);
  bytes.fill(0, freelist_at, freelist_at + 8);
  bytes.copy(bytes, version_valid_for_at, change_counter_at, change_counter_at + 4);
  return bytes;
}
