/**
 * Keeps reading from a device that accepts no bytes. The library polls for one event at a time: while a write waits, it
 * does not notice readable bytes, so a device that never accepts any would appear silent.
 */
import type { SerialPort } from 'serialport';

/** Event bits of libuv, which the library's poller passes through. */
const readable = 1;
const writable = 2;

/** Makes every poll of this open port include the events that already have listeners. */
export function readWhileWriting({ port }: SerialPort): void {
  if (port === undefined || !('poller' in port)) return;
  const { poller } = port;
  const poll = poller.poll.bind(poller);
  const waitedFor = (event: string, bit: number): number => (poller.listenerCount(event) > 0 ? bit : 0);
  poller.poll = (bits = 0) => poll(bits | waitedFor('readable', readable) | waitedFor('writable', writable));
}
