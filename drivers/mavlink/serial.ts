/** MAVLink over a serial port: a telemetry radio, a receiver's UART or an autopilot's USB. */
import { stat } from 'node:fs/promises';
import type { SerialPort } from 'serialport';
import { DeviceUnreachable } from '../../src/errors.ts';
import { every, within } from '../../src/platform/time.ts';
import type { LinkOptions } from './link-options.ts';
import { type MediumHost, type Send, untilLost } from './medium.ts';
import { hearWhileWaiting } from './serial-poll.ts';

type Serial = Extract<LinkOptions, { kind: 'serial' }>;

/** Long enough for a few heartbeats over a bad radio. */
const baud_try_ms = 4_000;
/** A vehicle that was heard at this rate and is silent is switched off, most likely; the radio's rate seldom changes. */
const baud_silence_ms = 30_000;
const look_every_ms = 500;
/** Less than a second at 57,600 baud: what waits longer is no longer worth sending. */
const unsent_bytes_max = 4_096;
/** A device that has taken nothing for so long gets nothing new: it would come upon old orders when it wakes up. */
const unsent_ms_max = 1_000;
/** The kernel goes on alone: it gives a device that takes nothing half a minute before it lets go of the port. */
const close_ms_max = 1_000;
/** So an open may have to wait until an earlier close is through. */
const open_ms_max = 40_000;

export async function runSerial({ path, baud }: Serial, medium: MediumHost): Promise<void> {
  const { SerialPort } = await import('serialport');
  let rate_index = 0;
  const port = new SerialPort({ path, baudRate: baud[rate_index] ?? 0, autoOpen: false });
  const over = new AbortController();
  const { promise: lost, reject } = Promise.withResolvers<never>();
  lost.catch(() => undefined);
  const fail = (reason: string): void => reject(new DeviceUnreachable(`serial port ${path}: ${reason}`));
  port.on('close', (error: Error | null) => fail(error?.message ?? 'the port was closed'));
  port.on('error', (error) => fail(error.message));
  if (!(await opened(port, path, medium.signal))) return;
  hearWhileWaiting(port);
  const device = await deviceAt(path);
  const stream = medium.stream(path);
  /** Not every driver of the kernel tells that its port was unplugged. */
  const check = async (): Promise<void> => {
    if ((await deviceAt(path)) !== device) fail('it was unplugged');
  };
  try {
    port.on('data', (chunk: Uint8Array) => stream.push(chunk));
    medium.opened(sender(port, path));
    let since_ms = performance.now();
    every(look_every_ms, over.signal, () => {
      const heard_ms = stream.heard_ms() ?? 0;
      const wait_ms = heard_ms > since_ms ? baud_silence_ms : baud_try_ms;
      if (baud.length < 2 || performance.now() - Math.max(since_ms, heard_ms) < wait_ms) return;
      rate_index = (rate_index + 1) % baud.length;
      since_ms = performance.now();
      port.update({ baudRate: baud[rate_index] ?? 0 }, (error) => error && port.destroy(error));
    });
    every(look_every_ms, over.signal, () => void check());
    await untilLost(lost, medium.signal);
  } finally {
    over.abort();
    stream.close();
    await closed(port);
  }
}

/** The number of the device behind the name; undefined when there is none. */
async function deviceAt(path: string): Promise<number | undefined> {
  return stat(path).then(
    ({ rdev }) => rdev,
    () => undefined,
  );
}

/** Answers whether it is open: not when the signal aborts first. */
async function opened(port: SerialPort, path: string, signal: AbortSignal): Promise<boolean> {
  const opening = new Promise<true>((resolve, reject) => {
    port.open((error) => {
      if (error) reject(new DeviceUnreachable(`serial port ${path}: ${error.message}`, { cause: error }));
      else resolve(true);
    });
  });
  if (await within(open_ms_max, opening, signal)) return true;
  void opening.then(async () => closed(port)).catch(() => undefined);
  if (signal.aborted) return false;
  throw new DeviceUnreachable(`serial port ${path}: it did not open within ${open_ms_max / 1_000} s`);
}

async function closed(port: SerialPort): Promise<void> {
  if (!port.isOpen) return;
  const closing = new Promise<void>((resolve) => {
    port.close(() => resolve());
  });
  await within(close_ms_max, closing);
}

/** Gives the port what it takes; what cannot leave soon is refused. */
function sender(port: SerialPort, path: string): Send {
  let taken_ms = 0;
  return (bytes, peer) => {
    if (peer !== undefined && peer !== path) return false;
    const now_ms = performance.now();
    if (port.writableLength === 0) taken_ms = now_ms;
    if (!port.isOpen || port.writableLength > unsent_bytes_max || now_ms - taken_ms > unsent_ms_max)
      return false;
    port.write(bytes, (error) => {
      if (!error) taken_ms = performance.now();
    });
    return true;
  };
}
