/** Asks STUN servers which address they see behind one network device. */
import type { Socket } from 'node:dgram';
import { randomBytes } from 'node:crypto';
import { openUdp } from '../../../src/platform/linux/bound-udp.ts';
import { familyOf } from '../../../src/platform/linux/socket-address.ts';
import { sleep } from '../../../src/platform/time.ts';
import type { PublicAddress, PublicAddressSpec } from './api.ts';
import { isPublicIp } from '../../../src/platform/public-ip.ts';
import { bindingRequest, readBindingResponse, transaction_id_bytes } from './stun.ts';

/** RFC 8489 section 6.2.1: the pause doubles with each request; the last one is waited for a little longer. */
const first_pause_ms = 500;
const requests_max = 5;
const last_pause_ms = 4_000;

type Server = PublicAddressSpec['servers'][number];

/**
 * `PublicAddress` of the agreement: one request of 20 bytes when all is well, and the next server when one is silent for
 * 11.5 s. Never rejects: what prevents the query prevents the probes too, and the prober reports it.
 */
export const publicAddress: PublicAddress = async ({ device, servers, signal }) => {
  for (const server of servers) {
    if (signal.aborted) return null;
    const address = await askServer(device, server, signal).catch(() => null);
    if (address !== null) return isPublicIp(address) ? address : null;
  }
  return null;
};

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
