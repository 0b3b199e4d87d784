/** What systemd and its journal are to a service: a Unix datagram socket. It reads only when it is asked to, so it can be as slow as a test wants. */
import { rmSync } from 'node:fs';
import { libc } from '../../../src/platform/linux/libc.ts';
import { eventually } from '../../support/eventually.ts';

const af_unix = 1;
const sock_dgram = 2;
const msg_dontwait = 0x40;
const datagram_bytes_max = 300_000;

export interface FakeSystemd {
  readonly path: string;
  /** Everything that was received since the last call. */
  readonly read: () => readonly Buffer[];
  /** Reads until all texts, one of them a line by line match, have come in this order; answers all that came. */
  readonly until: (...lines: readonly RegExp[]) => Promise<readonly string[]>;
  /** Closes and removes the socket: senders find nobody. */
  readonly leave: () => void;
}

export async function fakeSystemd(path: string): Promise<FakeSystemd> {
  const c = await libc();
  const fd = c.socket(af_unix, sock_dgram, 0);
  const address = Buffer.concat([Uint8Array.of(af_unix, 0), Buffer.from(path), Buffer.alloc(1)]);
  if (path.startsWith('@')) address[2] = 0;
  const bytes = path.startsWith('@') ? address.length - 1 : address.length;
  if (c.bind(fd, address, bytes) !== 0) throw new Error(`bind ${path}: ${c.errno()}`);
  const buffer = Buffer.alloc(datagram_bytes_max);
  const read = (): readonly Buffer[] => {
    const datagrams: Buffer[] = [];
    for (;;) {
      const size = c.recvfrom(fd, buffer, buffer.length, msg_dontwait, null, null);
      if (size < 0) return datagrams;
      datagrams.push(Buffer.from(buffer.subarray(0, size)));
    }
  };
  return {
    path,
    read,
    async until(...lines) {
      const heard: string[] = [];
      const isInOrder = (): boolean => {
        heard.push(...read().map(String));
        let from = 0;
        return lines.every((line) => {
          const at = heard.findIndex((text, index) => index >= from && line.test(text));
          from = at + 1;
          return at >= 0;
        });
      };
      await eventually(`${lines.join(', ')} in ${JSON.stringify(heard)}`, isInOrder);
      return heard;
    },
    leave: () => {
      c.close(fd);
      if (!path.startsWith('@')) rmSync(path, { force: true });
    },
  };
}

/** The fields of a datagram in the journal's native protocol. */
export function journalFields(datagram: Buffer): Readonly<Record<string, string>> {
  const fields: Record<string, string> = {};
  let at = 0;
  while (at < datagram.length) {
    const end = datagram.indexOf('\n', at);
    const line = datagram.toString('utf8', at, end);
    at = end + 1;
    if (line.includes('=')) {
      fields[line.slice(0, line.indexOf('='))] = line.slice(line.indexOf('=') + 1);
    } else {
      const length = Number(datagram.readBigUInt64LE(at));
      fields[line] = datagram.toString('utf8', at + 8, at + 8 + length);
      at += 8 + length + 1;
    }
  }
  return fields;
}
