/** Datagrams to a Unix socket of this machine, which systemd and its journal take and Node.js cannot send. Never waits. */
import { libc } from '../linux/libc.ts';
import { texts } from '../texts.ts';

const af_unix = 1;
const sock_dgram = 2;
const sock_cloexec = 0o2000000;
const msg_dontwait = 0x40;
const msg_nosignal = 0x4000;
/** sockaddr_un has so much room for a path, the final zero included. */
const path_bytes = 108;

/** `ok`, or the name of the error: `EAGAIN` when the receiver is too slow, `EMSGSIZE`, `ENOENT`, `ECONNREFUSED`. */
export type SendResult = string;

export interface DatagramSender {
  readonly send: (datagram: Uint8Array) => SendResult;
  /** Once; nothing can be sent afterwards. */
  readonly close: () => void;
}

/** `path` may be an abstract address, `@name`. Rejects when no socket can be had or the path is too long. */
export async function openDatagramSender(path: string): Promise<DatagramSender> {
  const address = unixAddress(path);
  const c = await libc();
  const fd = c.socket(af_unix, sock_dgram | sock_cloexec, 0);
  if (fd < 0) throw new Error(texts.socket_failed(path, c.errno()));
  return {
    send(datagram) {
      const flags = msg_dontwait | msg_nosignal;
      const sent = c.sendto(fd, datagram, datagram.length, flags, address, address.length);
      if (sent >= 0) return 'ok';
      const code = c.errno();
      // Two names of one number.
      return code === 'EWOULDBLOCK' ? 'EAGAIN' : code;
    },
    close: () => void c.close(fd),
  };
}

/** `sockaddr_un`; an abstract name begins with a zero byte and is as long as it is. */
function unixAddress(path: string): Buffer {
  const name = Buffer.from(path);
  if (name.length >= path_bytes) throw new Error(texts.path_too_long(path));
  const isAbstract = path.startsWith('@');
  if (isAbstract) name[0] = 0;
  const family = Buffer.alloc(2);
  family.writeUInt16LE(af_unix);
  return Buffer.concat(isAbstract ? [family, name] : [family, name, Buffer.alloc(1)]);
}
