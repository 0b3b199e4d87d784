/** Numbers of socket options and requests in the headers of Linux, the same on x64 and arm64, and how to read and set them. */
import type { Libc } from './libc.ts';

export const sol_socket = 1;
export const so_linger = 13;
export const ipproto_tcp = 6;
/** Of a TCP socket (SIOCOUTQ): bytes that the other side has not acknowledged. Of a terminal: bytes that were not transmitted. */
export const tiocoutq = 0x54_11;

/** What an ioctl writes into an int; 0 where it fails, as for a closed descriptor. */
export function askInt(c: Libc, fd: number, request: number): number {
  const value = new Int32Array(1);
  return c.ioctl(fd, request, new Uint8Array(value.buffer)) === 0 ? (value[0] ?? 0) : 0;
}

/** C integers as bytes. */
export function bytesOf(...values: readonly number[]): Uint8Array {
  return new Uint8Array(new Int32Array(values).buffer);
}
