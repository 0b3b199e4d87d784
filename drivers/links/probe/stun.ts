/** STUN messages (RFC 8489): the binding request and what a server answers to it. Pure. */
import { canonicalIp, ipv6Text } from '../../../src/platform/linux/socket-address.ts';

const header_bytes = 20;
const attribute_header_bytes = 4;
const magic_cookie = 0x2112a442;
export const transaction_id_bytes = 12;
const binding_request = 0x0001;
const binding_success = 0x0101;
const xor_mapped_address = 0x0020;
/** Attributes below this must be understood, or the answer is worth nothing (RFC 8489 section 14). */
const comprehension_optional_from = 0x8000;
/** MAPPED-ADDRESS, USERNAME, MESSAGE-INTEGRITY, ERROR-CODE, UNKNOWN-ATTRIBUTES, REALM, NONCE, ..., XOR-MAPPED-ADDRESS. */
const known_attributes: ReadonlySet<number> = new Set([
  0x0001,
  0x0006,
  0x0008,
  0x0009,
  0x000a,
  0x0014,
  0x0015,
  0x001c,
  0x001d,
  0x001e,
  xor_mapped_address,
]);

/** A binding request without attributes: 20 bytes. */
export function bindingRequest(transaction_id: Uint8Array): Buffer {
  const request = Buffer.alloc(header_bytes);
  request.writeUInt16BE(binding_request, 0);
  request.writeUInt32BE(magic_cookie, 4);
  request.set(transaction_id, 8);
  return request;
}

/**
 * Interprets a datagram as the answer to the request with this transaction id: the address that the server sees, `refused` for an
 * answer that gives none, `foreign` for a datagram that is no answer to the request.
 */
export function readBindingResponse(
  datagram: Buffer,
  transaction_id: Uint8Array,
): { readonly address: string } | 'refused' | 'foreign' {
  if (datagram.length < header_bytes || datagram.readUInt32BE(4) !== magic_cookie) return 'foreign';
  if (!datagram.subarray(8, header_bytes).equals(transaction_id)) return 'foreign';
  const type = datagram.readUInt16BE(0);
  if (type === binding_request) return 'foreign';
  if (type !== binding_success) return 'refused';
  const attributes = readAttributes(datagram);
  if (attributes === null) return 'refused';
  const value = attributes.get(xor_mapped_address);
  const address = value === undefined ? null : unmask(value, datagram.subarray(4, header_bytes));
  return address === null ? 'refused' : { address };
}

/** The first of each type; null when the message is cut short or asks for what we do not understand. */
function readAttributes(datagram: Buffer): ReadonlyMap<number, Buffer> | null {
  const end = header_bytes + datagram.readUInt16BE(2);
  if (end !== datagram.length) return null;
  const attributes = new Map<number, Buffer>();
  for (let at = header_bytes; at < end;) {
    if (at + attribute_header_bytes > end) return null;
    const type = datagram.readUInt16BE(at);
    const bytes = datagram.readUInt16BE(at + 2);
    const value_at = at + attribute_header_bytes;
    if (value_at + bytes > end) return null;
    if (type < comprehension_optional_from && !known_attributes.has(type)) return null;
    if (!attributes.has(type)) attributes.set(type, datagram.subarray(value_at, value_at + bytes));
    // Values are padded to four bytes.
    at = value_at + Math.ceil(bytes / 4) * 4;
  }
  return attributes;
}

/** XOR-MAPPED-ADDRESS (section 14.2): the address is masked with the magic cookie and the transaction id. */
function unmask(value: Buffer, mask: Buffer): string | null {
  const address_at = 4;
  const lengths: Readonly<Record<number, number>> = { 1: 4, 2: 16 };
  const bytes = lengths[value[1] ?? 0];
  if (bytes === undefined || value.length !== address_at + bytes) return null;
  const address = value.subarray(address_at).map((byte, at) => byte ^ (mask[at] ?? 0));
  return canonicalIp(bytes === 4 ? address.join('.') : ipv6Text(address));
}
