/** SNMP messages as bytes: BER (X.690) of RFC 3416 and RFC 3412. */

export const types = {
  integer: 0x02,
  octets: 0x04,
  sequence: 0x30,
  response: 0xa2,
  report: 0xa8,
} as const;

const max_message_bytes = 65_507;
const user_security_model = 3;
const short_length_max = 127;

export function tlv(type: number, ...content: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(content);
  const length =
    body.length <= short_length_max ? [body.length] : [0x82, body.length >> 8, body.length & 0xff];
  return Buffer.concat([Buffer.from([type, ...length]), body]);
}

export function integer(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return tlv(types.integer, bytes);
}

const octets = (bytes: readonly number[] | Buffer): Buffer => tlv(types.octets, Buffer.from(bytes));

function pdu(type: number, id: Buffer, varbinds: readonly Buffer[]): Buffer {
  return tlv(type, tlv(types.integer, id), integer(0), integer(0), tlv(types.sequence, ...varbinds));
}

export function response_pdu(id: Buffer, varbinds: readonly Buffer[] = []): Buffer {
  return pdu(types.response, id, varbinds);
}

export function report_pdu(id: Buffer): Buffer {
  return pdu(types.report, id, []);
}

/** One object with its value. */
export function varbind(oid: readonly number[], value: Buffer): Buffer {
  return tlv(types.sequence, tlv(0x06, Buffer.from(oid)), value);
}

/** A message of version 3; flags as in RFC 3412, section 6.4. */
export function v3Message(
  id: Buffer,
  { flags, pdu: content }: { readonly flags: number; readonly pdu: Buffer },
): Buffer {
  const isEncrypted = (flags & 2) !== 0;
  const head = tlv(
    types.sequence,
    tlv(types.integer, id),
    integer(max_message_bytes),
    octets([flags]),
    integer(user_security_model),
  );
  const security = tlv(
    types.octets,
    tlv(
      types.sequence,
      octets([1, 2, 3]),
      integer(0),
      integer(0),
      octets([]),
      octets(Buffer.alloc(12)),
      octets(Buffer.alloc(8)),
    ),
  );
  const scoped = isEncrypted
    ? octets(Buffer.alloc(16))
    : tlv(types.sequence, octets([1]), octets([]), content);
  return tlv(types.sequence, integer(3), head, security, scoped);
}
