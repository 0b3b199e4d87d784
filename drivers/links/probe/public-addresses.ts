/** Asks rarely for the public address of each link, and remembers it for as long as it can be believed. */
import type { Socket } from 'node:dgram';
import { randomBytes } from 'node:crypto';
import { openUdp } from '../../../src/platform/linux/bound-fd.ts';
import { familyOf, canonicalIp, ipv6Text } from '../../../src/platform/linux/socket-address.ts';
import { sleep } from '../../../src/platform/time.ts';
import { isPublicIp } from '../../../src/platform/public-ip.ts';

interface PublicAddressesSpec {
  readonly ask: typeof publicAddress;
  readonly servers: readonly Server[];
  readonly refresh_ms: number;
  readonly signal: AbortSignal;
  /** An answer has come. */
  readonly onChange: () => void;
}

interface Addressed {
  readonly name: string;
  readonly ifindex: number;
  /** The interface's own: the public address is asked for again when they change. */
  readonly addresses: readonly string[];
}

interface Known {
  /** Interface and addresses that the answer belongs to. */
  readonly key: string;
  readonly ip: string | null;
  readonly next_mono_ms: number;
  readonly isAsking: boolean;
  readonly failures: number;
}

/** Pause after a question without an answer; doubles with each, up to the refresh. */
const retry_first_ms = 30_000;

export class PublicAddresses {
  readonly #spec: PublicAddressesSpec;
  readonly #known = new Map<string, Known>();

  constructor(spec: PublicAddressesSpec) {
    this.#spec = spec;
  }

  /** What servers saw of the link, or null. Asks in the background when it is due; `mono_ms` never steps. */
  of(link: Addressed, mono_ms: number): string | null {
    if (this.#spec.servers.length === 0) return null;
    const key = JSON.stringify([link.ifindex, ...[...link.addresses].sort()]);
    const known = this.#known.get(link.name);
    const isCurrent = known?.key === key;
    if (!isCurrent || (!known.isAsking && mono_ms >= known.next_mono_ms)) {
      const kept = isCurrent ? known : { key, ip: null, next_mono_ms: 0, failures: 0 };
      this.#known.set(link.name, { ...kept, isAsking: true });
      void this.#ask(link.name, key);
    }
    return isCurrent ? known.ip : null;
  }

  /** Forgets all links but these. */
  keepOnly(listed: ReadonlySet<string>): void {
    for (const name of this.#known.keys()) if (!listed.has(name)) this.#known.delete(name);
  }

  async #ask(device: string, key: string): Promise<void> {
    const { ask, servers, signal, refresh_ms, onChange } = this.#spec;
    const ip = await ask({ device, servers, signal }).catch(() => null);
    const known = this.#known.get(device);
    // The link has another address by now: the answer is about the old one.
    if (signal.aborted || known?.key !== key) return;
    const failures = ip === null ? known.failures + 1 : 0;
    const pause_ms = ip === null ? Math.min(refresh_ms, retry_first_ms * 2 ** (failures - 1)) : refresh_ms;
    const next_mono_ms = performance.now() + pause_ms;
    this.#known.set(device, { key, ip, next_mono_ms, isAsking: false, failures });
    onChange();
  }
}

/** RFC 8489 section 6.2.1: the pause doubles with each request; the last one is waited for a little longer. */
const first_pause_ms = 500;
const requests_max = 5;
const last_pause_ms = 4_000;

/** A STUN server (RFC 8489). */
interface Server {
  readonly ip: string;
  readonly port: number;
}

/**
 * The address that servers see behind the device, asked in turn; null when none answers or the answer is no public address. One request of 20 bytes when all is well, and the next server when one is silent for
 * 11.5 s. Never rejects: what prevents the query prevents the probes too, and the prober reports it.
 */
export async function publicAddress({
  device,
  servers,
  signal,
}: {
  readonly device: string;
  readonly servers: readonly Server[];
  readonly signal: AbortSignal;
}): Promise<string | null> {
  for (const server of servers) {
    if (signal.aborted) return null;
    const address = await askServer(device, server, signal).catch(() => null);
    if (address !== null) return isPublicIp(address) ? address : null;
  }
  return null;
}

/** The address that this server sees; null when it does not answer, or not with an address. */
async function askServer(device: string, server: Server, signal: AbortSignal): Promise<string | null> {
  const family = familyOf(server.ip);
  if (family === null) return null;
  const socket = await openUdp({ device, family });
  const over = new AbortController();
  const transaction_id = randomBytes(transaction_id_bytes);
  let seen: string | null = null;
  socket.on('message', (datagram) => {
    const answer = readBindingResponse(datagram, transaction_id);
    if (answer === 'foreign') return;
    if (answer !== 'refused') seen = answer.address;
    over.abort();
  });
  socket.on('error', () => over.abort());
  try {
    await repeat(
      socket,
      { server, request: bindingRequest(transaction_id) },
      AbortSignal.any([signal, over.signal]),
    );
  } finally {
    over.abort();
    socket.close();
  }
  return seen;
}

interface Question {
  readonly server: Server;
  readonly request: Buffer;
}

/** Sends the request on the schedule of the specification until `signal` aborts. A request that cannot be sent is a lost one. */
async function repeat(socket: Socket, { server, request }: Question, signal: AbortSignal): Promise<void> {
  let pause_ms = first_pause_ms;
  for (let count = 1; count <= requests_max && !signal.aborted; count += 1) {
    socket.send(request, server.port, server.ip, () => undefined);
    await sleep(count === requests_max ? last_pause_ms : pause_ms, signal);
    pause_ms *= 2;
  }
}

const header_bytes = 20;
const attribute_header_bytes = 4;
const magic_cookie = 0x2112a442;
const transaction_id_bytes = 12;
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
