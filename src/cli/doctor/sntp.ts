/** Measures the clock offset from a time server (SNTP, RFC 4330) with one request and one reply. */
import { createSocket } from 'node:dgram';
import { isIPv6 } from 'node:net';

const ntp_port = 123;
const packet_bytes = 48;
/** Version 4, mode 3 (client); section 4. */
const client_head = 0x23;
const server_mode = 4;
/** Seconds from 1900, where NTP begins, to 1970. */
const ntp_epoch_s = 2_208_988_800;
const fraction = 2 ** 32;

/** `host`, `host:port` or `[v6]:port`. */
export function splitServer(text: string): { readonly host: string; readonly port: number } {
  if (isIPv6(text)) return { host: text, port: ntp_port };
  const [, host = text, port] = /^\[?([^\]]*?)\]?(?::(\d{1,5}))?$/u.exec(text) ?? [];
  return { host, port: port === undefined ? ntp_port : Number(port) };
}

/** Milliseconds that the server is ahead of this machine. Rejects when `signal` aborts before the answer. */
export async function clockOffset(server: string, signal: AbortSignal): Promise<number> {
  const { host, port } = splitServer(server);
  const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4');
  try {
    return await new Promise<number>((resolve, reject) => {
      signal.addEventListener('abort', () => reject(new Error('timed out')), { once: true });
      socket.on('error', reject);
      const sent_ms = Date.now();
      // The server returns the transmit timestamp unchanged, so a random value identifies the answer to this request.
      const cookie = crypto.getRandomValues(new Uint8Array(8));
      socket.on('message', (answer) => {
        const received_ms = Date.now();
        const there = readAnswer(answer, cookie);
        if (there) resolve((there.received_ms - sent_ms + (there.sent_ms - received_ms)) / 2);
      });
      const question = Buffer.alloc(packet_bytes);
      question[0] = client_head;
      question.set(cookie, 40);
      socket.send(question, port, host, (error) => error && reject(error));
    });
  } finally {
    socket.close();
  }
}

/** Times of receipt and answer at the server; undefined for a foreign answer, or from an unsynchronised server. */
function readAnswer(answer: Buffer, cookie: Uint8Array) {
  if (answer.length < packet_bytes || !answer.subarray(24, 32).equals(cookie)) return undefined;
  const [head = 0, stratum = 0] = answer;
  const isUnsynchronised = head >>> 6 === 3 || stratum === 0 || stratum > 15;
  if ((head & 7) !== server_mode || isUnsynchronised) return undefined;
  return { received_ms: timeAt(answer, 32), sent_ms: timeAt(answer, 40) };
}

function timeAt(answer: Buffer, at: number): number {
  return (answer.readUInt32BE(at) - ntp_epoch_s + answer.readUInt32BE(at + 4) / fraction) * 1_000;
}
