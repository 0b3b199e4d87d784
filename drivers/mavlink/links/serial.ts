/** MAVLink over a serial port: a telemetry radio, a receiver's UART or an autopilot's USB. */
import { stat } from 'node:fs/promises';
import type { SerialPort } from 'serialport';
import { DeviceUnreachable } from '../../../src/platform/errors.ts';
import { type UnsentBytes, unsentBytes } from '../../../src/platform/linux/unsent-bytes.ts';
import { every, within } from '../../../src/platform/time.ts';
import { silenceSince } from '../../../src/platform/stalls.ts';
import type { LinkOptions } from '../options.ts';
import type { MediumHost, Send } from './medium.ts';
import { untilLost } from './sockets.ts';
import { texts } from './texts.ts';

type Serial = Extract<LinkOptions, { kind: 'serial' }>;

/** Long enough for a few heartbeats over a bad radio. */
const baud_try_ms = 4_000;
/** If frames were received at this rate, the silent vehicle is probably switched off; the radio's rate seldom changes. */
const baud_silence_ms = 30_000;
const check_every_ms = 500;
/** Less than a second at 57,600 baud: older bytes are not worth sending. */
const unsent_bytes_max = 4_096;
/** A device that accepted no bytes for this long gets no new ones: it would execute old commands when it resumes. */
const unsent_ms_max = 1_000;
/** The kernel completes the close: it waits up to 30 s for a device that accepts no bytes before it closes the port. */
const close_ms_max = 1_000;
/** An open may have to wait for an earlier close; the same for what is left of an earlier attempt. */
const open_ms_max = 40_000;

export async function runSerial({ path, baud }: Serial, medium: MediumHost): Promise<void> {
  const [{ SerialPort }, unsent] = await Promise.all([import('serialport'), unsentBytes()]);
  let rate_index = 0;
  const settings = { path, baudRate: baud[rate_index] ?? 0, autoOpen: false };
  const port = new SerialPort(settings);
  // The library does not read while a write waits: a device that accepts no bytes would appear silent. So it is written to by another
  // descriptor, which is under the lock of the first one.
  const writer = new SerialPort({ ...settings, lock: false });
  const over = new AbortController();
  const { promise: lost, reject } = Promise.withResolvers<never>();
  lost.catch(() => undefined);
  const fail = (reason: string): void => reject(new DeviceUnreachable(texts.serial_failed(path, reason)));
  let device: number | undefined;
  /** Not every kernel driver reports that its port was unplugged, and a port that was hung up looks like a silent one. */
  const check = async (): Promise<void> => {
    const found = await deviceAt(path);
    const fd = descriptorOfPort(port);
    if (found === undefined || found !== device) fail(texts.unplugged);
    else if (fd !== null && unsent.hasHungUp(fd)) fail(texts.hung_up);
  };
  const end = (fault?: Error | null): void => {
    void check().finally(() => fail(fault ? portFault(fault) : texts.port_closed));
  };
  for (const each of [port, writer]) each.on('close', end).on('error', end);
  if (!(await opened(port, path, medium.signal))) return;
  // An earlier run may have suspended it, which outlives its descriptor where another program has the port open.
  const opened_fd = descriptorOfPort(port);
  if (opened_fd !== null) unsent.resume(opened_fd);
  device = await deviceAt(path);
  const stream = medium.stream(path);
  try {
    if (!(await opened(writer, path, medium.signal))) return;
    port.on('data', (chunk: Uint8Array) => stream.push(chunk));
    medium.opened({
      send: sender(writer, path),
      discard(peer) {
        if (peer === path) discard(writer, unsent, () => fail(texts.unsent_discarded));
      },
      isNamed: () => true,
    });
    let since_ms = performance.now();
    every(check_every_ms, over.signal, () => {
      const received_ms = stream.received_ms() ?? 0;
      const wait_ms = received_ms > since_ms ? baud_silence_ms : baud_try_ms;
      if (baud.length < 2 || silenceSince(Math.max(since_ms, received_ms)) < wait_ms) return;
      rate_index = (rate_index + 1) % baud.length;
      since_ms = performance.now();
      port.update({ baudRate: baud[rate_index] ?? 0 }, (error) => error && port.destroy(error));
    });
    every(check_every_ms, over.signal, () => void check());
    await untilLost(lost, medium.signal);
  } finally {
    over.abort();
    stream.close();
    const fd = descriptorOfPort(port);
    if (fd !== null) unsent.flush(fd);
    await Promise.all([closed(writer, path), closed(port, path)]);
  }
}

/** Returns the device number behind the path; undefined when there is none. */
async function deviceAt(path: string): Promise<number | undefined> {
  return stat(path).then(
    ({ rdev }) => rdev,
    () => undefined,
  );
}

/** Opens the port; returns false when the signal aborts first. */
async function opened(port: SerialPort, path: string, signal: AbortSignal): Promise<boolean> {
  const isFree = untilFinished(path).then(() => true);
  if ((await within(open_ms_max, isFree, signal)) && (await openedInTime(port, path, signal))) return true;
  if (signal.aborted) return false;
  throw new DeviceUnreachable(texts.serial_failed(path, texts.open_timeout(open_ms_max / 1_000)));
}

/** Returns whether the port was opened in time; a port that opens later is closed. */
async function openedInTime(port: SerialPort, path: string, signal: AbortSignal): Promise<boolean> {
  const opening = new Promise<true>((resolve, reject) => {
    port.open((error) => {
      if (error) reject(new DeviceUnreachable(texts.serial_failed(path, openFault(error)), { cause: error }));
      else resolve(true);
    });
  });
  if (await within(open_ms_max, opening, signal)) return true;
  const closing = opening.then(async () => closed(port, path));
  leaveUnfinished(path, closing);
  return false;
}

/** The library gives the words of the operating system without its code. */
function openFault({ message }: Error): string {
  if (/no such (?:file|device)/iu.test(message)) return texts.no_serial_device;
  if (/permission denied/iu.test(message)) return texts.serial_denied;
  if (/cannot lock|temporarily unavailable|busy/iu.test(message)) return texts.serial_in_use;
  return message.replace(/^Error: /u, '');
}

/** The library calls it a bad descriptor when the kernel reports an error of the device. */
function portFault({ message }: Error): string {
  return /bad file descriptor/iu.test(message) ? texts.hung_up : message.replace(/^Error: /u, '');
}

async function closed(port: SerialPort, path: string): Promise<void> {
  if (!port.isOpen) return;
  const closing = new Promise<void>((resolve) => {
    port.close(() => resolve());
  });
  leaveUnfinished(path, closing);
  await within(close_ms_max, closing);
}

/** Writes to the port while it accepts bytes; rejects frames that cannot be sent soon. */
function sender(port: SerialPort, path: string): Send {
  let accepted_ms = 0;
  return (bytes, peer) => {
    if (peer !== undefined && peer !== path) return false;
    const now_ms = performance.now();
    if (port.writableLength === 0) accepted_ms = now_ms;
    if (!port.isOpen || port.writableLength > unsent_bytes_max || now_ms - accepted_ms > unsent_ms_max)
      return false;
    port.write(bytes, (error) => {
      if (!error) accepted_ms = performance.now();
    });
    return true;
  };
}

/**
 * Discards what the device has not accepted. The library cannot drop a write that waits or runs in another thread, and would continue
 * it in the room that the flush makes: so the output is suspended, and the port reopened, since closing it ends the write.
 */
function discard(port: SerialPort, unsent: UnsentBytes, reopen: () => void): void {
  const fd = descriptorOfPort(port);
  if (fd === null) return;
  const isWriting = port.writableLength > 0;
  if (isWriting) unsent.suspend(fd);
  unsent.flush(fd);
  if (isWriting) reopen();
}

function descriptorOfPort({ port }: SerialPort): number | null {
  const fd: unknown = port === undefined ? null : Reflect.get(port, 'fd');
  return typeof fd === 'number' && fd >= 0 ? fd : null;
}

// Opens and closes of devices that the kernel has not completed, by path. Each occupies one of the four threads that the
// whole process has for files and names: another attempt at the same device waits for it instead of taking the next one.

const unfinished = new Map<string, Promise<unknown>>();

/** Remembers work on the device until it settles. */
export function leaveUnfinished(path: string, work: Promise<unknown>): void {
  const settled: Promise<unknown> = Promise.allSettled([unfinished.get(path), work]).finally(() => {
    if (unfinished.get(path) === settled) unfinished.delete(path);
  });
  unfinished.set(path, settled);
}

/** Resolves when nothing is left of earlier work on the device; never rejects. */
export async function untilFinished(path: string): Promise<void> {
  await unfinished.get(path);
}
