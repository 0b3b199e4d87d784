/** Bytes that were written to a socket or a serial port and have not left: how many there are, and how to discard them. */
import { libc } from './libc.ts';
import { askInt, bytesOf, ipproto_tcp, so_linger, sol_socket, tiocoutq } from './socket-options.ts';

/** As in the headers of Linux, the same on x64 and arm64. */
const tcp_user_timeout = 18;
const tcoflush = 1;
const [tcooff, tcoon] = [0, 1];

export interface UnsentBytes {
  /** Returns the number of written bytes that are still here; 0 for a closed descriptor. */
  readonly count: (fd: number) => number;
  /** Discards what a serial port has not transmitted. */
  readonly flush: (fd: number) => void;
  /** Suspends what a serial port transmits, also what is written later; closing the port discards it then. */
  readonly suspend: (fd: number) => void;
  readonly resume: (fd: number) => void;
  /** Whether the kernel hung a serial port up: then each read succeeds with no bytes. */
  readonly hasHungUp: (fd: number) => boolean;
  /**
   * Makes a TCP socket discard its unsent bytes when it is closed, also when the process is killed, and makes the
   * connection fail when the other side acknowledges nothing for `silence_max_ms`.
   */
  readonly neverLinger: (fd: number, silence_max_ms: number) => void;
}

/** Loads the functions once; calls are synchronous then. */
export async function unsentBytes(): Promise<UnsentBytes> {
  const c = await libc();
  return {
    count: (fd) => askInt(c, fd, tiocoutq),
    flush(fd) {
      c.tcflush(fd, tcoflush);
    },
    suspend(fd) {
      c.tcflow(fd, tcooff);
    },
    resume(fd) {
      c.tcflow(fd, tcoon);
    },
    hasHungUp: (fd) => c.ioctl(fd, tiocoutq, new Uint8Array(4)) !== 0 && c.errno() === 'EIO',
    neverLinger(fd, silence_max_ms) {
      c.setsockopt(fd, sol_socket, so_linger, bytesOf(1, 0), 8);
      c.setsockopt(fd, ipproto_tcp, tcp_user_timeout, bytesOf(silence_max_ms), 4);
    },
  };
}

/** Returns the descriptor of an open socket, which Node.js does not publish; null for a closed one. */
export function descriptorOf(socket: object): number | null {
  const handle: unknown = Reflect.get(socket, '_handle');
  const fd: unknown = typeof handle === 'object' && handle !== null ? Reflect.get(handle, 'fd') : null;
  return typeof fd === 'number' && fd >= 0 ? fd : null;
}
