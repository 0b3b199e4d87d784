/** Checks the clock: whether it is synchronised from the network, and its offset from a time server. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createSocket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import { messageOf } from '../../platform/errors.ts';
import { durationInWords } from '../../platform/log/entry.ts';
import { type ClockEvidence, openClockEvidence, vouched, systemClock } from '../../platform/clock.ts';
import { type Finding, fail, ok, warn } from './finding.ts';
import { texts } from './texts.ts';
import { readTextUpTo, small_bytes_max } from '../../platform/bounded-file.ts';

/** A larger offset of positions and alarms misleads an operator. */
const tolerable_ms = 500;
/** Certificate checks fail, and history is stored under the wrong day. */
const wrong_ms = 60_000;
const remedy = texts.set_clock_by_ntp;

const timesyncd = [
  '/etc/systemd/timesyncd.conf',
  '/etc/systemd/timesyncd.conf.d',
  '/run/systemd/timesyncd.conf.d',
];

interface ClockCheck {
  /** Queried with SNTP; default: the server configured for systemd-timesyncd. */
  readonly server: string | undefined;
  /** `clock: trusted` in the configuration; undefined: it has no such key. */
  readonly trusted: boolean | undefined;
}

export async function checkClock(
  { server, trusted }: ClockCheck,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  return [
    setFinding(trusted ? vouched : await openClockEvidence(), trusted !== undefined),
    ...(await offsetFinding(server ?? (await configuredServer()), signal)),
  ];
}

function setFinding(evidence: ClockEvidence, hasKey: boolean): Finding {
  const { time_ms, synced } = systemClock({ evidence }).stamp();
  const now = new Date(time_ms).toISOString().slice(0, 19);
  if (synced) return ok('clock', `${now}Z`);
  return warn('clock', texts.clock_not_synchronised(now), hasKey ? texts.or_trust_clock(remedy) : remedy);
}

async function offsetFinding(server: string | undefined, signal: AbortSignal): Promise<readonly Finding[]> {
  if (server === undefined) return [];
  const what = texts.clock_against(server);
  try {
    const offset_ms = await clockOffset(server, signal);
    const off = `${offsetText(Math.abs(offset_ms))} ${offset_ms > 0 ? 'behind' : 'ahead'}`;
    if (Math.abs(offset_ms) > wrong_ms) return [fail(what, off, remedy)];
    return [Math.abs(offset_ms) > tolerable_ms ? warn(what, off, remedy) : ok(what, off)];
  } catch (error) {
    return [warn(what, texts.no_answer(messageOf(error)), texts.open_ntp_port)];
  }
}

function offsetText(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : durationInWords(ms / 1_000);
}

/** The first server of `NTP=`; a later file overrides an earlier one. */
async function configuredServer(): Promise<string | undefined> {
  let server: string | undefined;
  for (const file of await configurationFiles()) {
    const text = await readTextUpTo(file, small_bytes_max).catch(() => '');
    server = /^\s*NTP=\s*(\S+)/mu.exec(text)?.[1] ?? server;
  }
  return server;
}

async function configurationFiles(): Promise<readonly string[]> {
  const files: string[] = [];
  for (const path of timesyncd) {
    if (path.endsWith('.conf')) files.push(path);
    else
      files.push(
        ...(await readdir(path).catch(() => []))
          .toSorted((a, b) => a.localeCompare(b, 'en'))
          .map((name) => join(path, name)),
      );
  }
  return files;
}

// Measures the clock offset from a time server (SNTP, RFC 4330) with one request and one reply.

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
