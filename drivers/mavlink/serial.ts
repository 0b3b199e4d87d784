/** MAVLink over a serial port: a telemetry radio, a receiver's UART or an autopilot's USB. */
import { stat } from 'node:fs/promises';
import type { SerialPort } from 'serialport';
import { DeviceUnreachable } from '../../src/errors.ts';
import { every } from '../../src/platform/time.ts';
import type { LinkOptions } from './link-options.ts';
import { type MediumHost, untilLost } from './medium.ts';

type Serial = Extract<LinkOptions, { kind: 'serial' }>;

/** Long enough for a few heartbeats over a bad radio. */
const baud_try_ms = 4_000;
/** A vehicle that was heard at this rate and is silent is switched off, most likely; the radio's rate seldom changes. */
const baud_silence_ms = 30_000;
const look_every_ms = 500;
/** Less than a second at 57,600 baud: what waits longer is no longer worth sending. */
const unsent_bytes_max = 4_096;

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
  await opened(port, path);
  const device = await deviceAt(path);
  const stream = medium.stream(path);
  /** Not every driver of the kernel tells that its port was unplugged. */
  const check = async (): Promise<void> => {
    if ((await deviceAt(path)) !== device) fail('it was unplugged');
  };
  try {
    port.on('data', (chunk: Uint8Array) => stream.push(chunk));
    medium.opened((bytes, peer) => (peer === undefined || peer === path) && write(port, bytes));
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

async function opened(port: SerialPort, path: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    port.open((error) => {
      if (error) reject(new DeviceUnreachable(`serial port ${path}: ${error.message}`, { cause: error }));
      else resolve();
    });
  });
}

async function closed(port: SerialPort): Promise<void> {
  if (!port.isOpen) return;
  await new Promise<void>((resolve) => {
    port.close(() => resolve());
  });
}

function write(port: SerialPort, bytes: Uint8Array): boolean {
  if (!port.isOpen || port.writableLength > unsent_bytes_max) return false;
  port.write(bytes);
  return true;
}
