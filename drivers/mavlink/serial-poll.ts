/**
 * Hears a device that takes nothing. The library asks the kernel for one event at a time: while bytes wait until the
 * port takes them, it does not notice that there are some to read, and a device that never takes any would go silent.
 */
import type { SerialPort } from 'serialport';

/** Bits of libuv, which the library's poller passes on. */
const readable = 1;
const writable = 2;

/** From now on every wait of this open port is also one for what was waited for already. */
export function hearWhileWaiting({ port }: SerialPort): void {
  if (port === undefined || !('poller' in port)) return;
  const { poller } = port;
  const poll = poller.poll.bind(poller);
  const waitedFor = (event: string, bit: number): number => (poller.listenerCount(event) > 0 ? bit : 0);
  poller.poll = (bits = 0) => poll(bits | waitedFor('readable', readable) | waitedFor('writable', writable));
}
