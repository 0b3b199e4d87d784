/** An SNMP agent that answers as a test tells it, down to the bytes: what no real agent can be brought to send. */
import { createSocket, type RemoteInfo } from 'node:dgram';
import { once } from 'node:events';
import { report_pdu, response_pdu, tlv, types, v3Message } from '../support/drivers/snmp-bytes.ts';

/** The request as far as an answer repeats it. */
export interface SnmpRequest {
  /** Version and community, as they were sent. */
  readonly opening: Buffer;
  /** The content of the integer that the answer has to repeat. */
  readonly id: Buffer;
  readonly version: number;
}

export type SnmpAnswer = (request: SnmpRequest) => Buffer;

/** Answers each request; resolves once it listens on a free port of the loopback. */
export async function startFakeSnmpAgent(answer: SnmpAnswer) {
  const socket = createSocket('udp4');
  let isOpen = true;
  const seen = { requests: 0, client: undefined as RemoteInfo | undefined };
  socket.on('message', (bytes, client) => {
    seen.requests += 1;
    seen.client = client;
    const sent = answer(readRequest(bytes));
    // It takes a while, so that virtual time goes on while it answers without end.
    setTimeout(() => {
      if (isOpen) socket.send(sent, client.port, client.address);
    }, 1);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    port: socket.address().port,
    seen,
    stop: async (): Promise<void> => {
      isOpen = false;
      socket.close();
      await once(socket, 'close');
    },
  };
}

/** What a well-behaved agent without any object sends, and what hostile ones do. */
export const snmpAnswers = {
  /** A report belongs to version 3, whose security parameters version 2c does not have. */
  reportInVersion2: ({ opening, id }) => tlv(types.sequence, opening, report_pdu(id)),
  /** Signed for a user that a session of version 2c does not have. */
  signedVersion3: ({ id }) => v3Message(id, { flags: 1, pdu: response_pdu(id) }),
  encryptedVersion3: ({ id }) => v3Message(id, { flags: 3, pdu: response_pdu(id) }),
  /** Asks each time to try again with the time that it names. */
  endlessReports: ({ id }) => v3Message(id, { flags: 0, pdu: report_pdu(id) }),
  noise: () => Buffer.from('noise'),
} satisfies Record<string, SnmpAnswer>;

/** Lengths of requests of these tests have one byte. */
function readRequest(bytes: Buffer): SnmpRequest {
  const version = bytes[4] ?? 0;
  const after_version = 5;
  const length = bytes[after_version + 1] ?? 0;
  const second = bytes.subarray(after_version + 2, after_version + 2 + length);
  if (version === 3) return { opening: Buffer.alloc(0), id: integerAt(second, 0), version };
  const pdu_at = after_version + 2 + length;
  return { opening: bytes.subarray(2, pdu_at), id: integerAt(bytes, pdu_at + 2), version };
}

function integerAt(bytes: Buffer, at: number): Buffer {
  return bytes.subarray(at + 2, at + 2 + (bytes[at + 1] ?? 0));
}
