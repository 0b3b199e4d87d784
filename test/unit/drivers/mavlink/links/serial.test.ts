/** Links over a serial port: a pseudo-terminal is the port, another program is the device. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync } from 'node:fs';
import { rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { heartbeat } from '../frames.ts';
import { listen, over, useLinks } from './test-link.ts';
import { linkOptions } from '../../../../../drivers/mavlink/options.ts';
import { openLink } from '../../../../../drivers/mavlink/links/link.ts';
import { texts } from '../../../../../drivers/mavlink/links/texts.ts';
import { type Libc, libc } from '../../../../../src/platform/linux/libc.ts';
import { eventually } from '../../../../support/eventually.ts';
import { peerMissing, program, rootMissing } from '../../../../support/peers.ts';
import { makeDirectory } from '../../../../support/temporary.ts';

/**
 * Opens a pseudo-terminal, prints its name, then copies bytes between it and its standard streams. On SIGUSR1 it
 * stops reading, and the port is full; on the next one it reads again. Signals are read as bytes, so none is missed.
 */
const relay = `
import os, select, signal, sys, tty
master, port = os.openpty()
tty.setraw(port)
os.set_blocking(port, False)
turns, turn = os.pipe()
os.set_blocking(turn, False)
signal.signal(signal.SIGUSR1, lambda *_: None)
signal.set_wakeup_fd(turn)
sys.stdout.write(os.ttyname(port) + "\\n")
sys.stdout.flush()
inputs = [0, master, turns]
while True:
    ready = select.select(inputs, [], [])[0]
    if turns in ready:
        os.read(turns, 1)
        inputs = [0, turns] if master in inputs else [0, master, turns]
        try:
            while master not in inputs: os.write(port, bytes(4096))
        except BlockingIOError:
            pass
        sys.stderr.write("turned\\n")
        continue
    for fd in ready:
        data = os.read(fd, 4096)
        if fd == 0 and not data:
            sys.exit()
        os.write(master if fd == 0 else 1, data)
`;

let dir: string;
const relays: ChildProcessWithoutNullStreams[] = [];
beforeEach(async () => {
  dir = await makeDirectory();
});
afterEach(async () => {
  for (const child of relays.splice(0)) child.kill();
  await rm(dir, { recursive: true });
});
// Before the peers are gone.
useLinks();

/** Hangs the port up for all who have it open, as the kernel does when a device or a login prompt goes. */
function hangUp(path: string, ioctl: Libc['ioctl']): void {
  const tiocvhangup = 0x54_37;
  const fd = openSync(path, constants.O_RDWR | constants.O_NOCTTY);
  ioctl(fd, tiocvhangup, new Uint8Array());
  closeSync(fd);
}

/** A radio whose port appears under `path`, as udev names ports by their device. */
async function plugIn(path: string) {
  const child = spawn(program('python3'), ['-u', '-c', relay]);
  relays.push(child);
  const [first] = (await once(child.stdout, 'data')) as [Buffer];
  await symlink(first.toString().trim(), path);
  const got: Buffer[] = [];
  child.stdout.on('data', (bytes: Buffer) => got.push(bytes));
  return {
    send: (bytes: Uint8Array) => void child.stdin.write(bytes),
    got: () => Buffer.concat(got),
    /** Stops reading, or reads again. */
    async toggleReading() {
      const turned = once(child.stderr, 'data');
      child.kill('SIGUSR1');
      await turned;
    },
    /** Removes the port's name without an error for programs that have it open. */
    vanish: async () => rm(path),
    async unplug() {
      // First the name: the kernel may reuse the number of a closed pseudo-terminal immediately.
      await rm(path);
      child.kill();
      await once(child, 'exit');
    },
  };
}

describe.skipIf(peerMissing('python3'))('Serial link', () => {
  it('waits for its radio, sends and receives, and reopens when the radio is plugged in again', async () => {
    const path = join(dir, 'usb-radio');
    const { link, frames, states, untilDown, untilUp, untilReceived } = listen({ kind: 'serial', path });
    await untilDown();
    expect(states[0]?.[1]).toContain(`serial port ${path}: `);
    const radio = await plugIn(path);
    await untilUp();
    radio.send(heartbeat(1));
    await untilReceived(1);
    expect(frames).toEqual([{ seq: 1, sysid: 1, peer: path, signature_ok: null }]);
    link.send(heartbeat(2, 245));
    await eventually('the radio has it', () => radio.got().equals(heartbeat(2, 245)));
    await radio.unplug();
    await untilDown();
    expect(states.at(-1)?.[1]).toBe(texts.serial_failed(path, texts.unplugged));
    const again = await plugIn(path);
    await untilUp(2);
    again.send(heartbeat(3));
    await untilReceived(2);
    expect(states.map(([up]) => up)).toEqual([false, true, false, true]);
    over.abort();
    await link.ended;
  });

  it('goes down when its port disappears without an error', async () => {
    const path = join(dir, 'usb-radio');
    const radio = await plugIn(path);
    const { states, untilDown, untilUp } = listen({ kind: 'serial', path });
    await untilUp();
    await radio.vanish();
    await untilDown();
    expect(states.at(-1)?.[1]).toBe(texts.serial_failed(path, texts.unplugged));
  });

  it.skipIf(rootMissing())('reopens a port that the system hung up while it was read', async () => {
    const path = join(dir, 'usb-radio');
    const radio = await plugIn(path);
    const { ioctl } = await libc();
    const states: (readonly [up: boolean, reason: string | undefined])[] = [];
    let frames = 0;
    const listener = {
      frame() {
        frames += 1;
        // A hung-up port can be read, without an end and without bytes.
        if (frames === 1) hangUp(path, ioctl);
      },
      state: (up: boolean, reason?: string) => void states.push([up, reason]),
    };
    const link = openLink(linkOptions.parse({ kind: 'serial', path }), listener, { signal: over.signal });
    await eventually('the link is up', () => link.stats().up);
    radio.send(heartbeat(1));
    await eventually('the link is up again', () => link.stats().opened > 1);
    expect(states.map(([, reason]) => reason)).toEqual([
      undefined,
      texts.serial_failed(path, texts.hung_up),
      undefined,
    ]);
    radio.send(heartbeat(2));
    await eventually('the link receives', () => frames > 1);
    over.abort();
    await link.ended;
  });

  it(
    'receives from a device that does not read, and keeps no old frames for it',
    { tags: 'long' },
    async () => {
      const path = join(dir, 'usb-radio');
      const radio = await plugIn(path);
      const { link, untilUp, untilReceived } = listen({ kind: 'serial', path });
      await untilUp();
      await radio.toggleReading();
      await eventually('the link rejects frames', () => {
        link.send(heartbeat(2, 245));
        return link.stats().unsent > 0;
      });
      expect(link.stats().bytes_out).toBeLessThan(4_096);
      radio.send(heartbeat(1));
      await untilReceived(1);
      await radio.toggleReading();
      await eventually('the device receives frames again', () => {
        link.send(heartbeat(3, 245));
        return radio.got().includes(Buffer.from(heartbeat(3, 245)));
      });
      over.abort();
      await link.ended;
    },
  );

  it('discards what the device has not accepted when a command has ended', async () => {
    const path = join(dir, 'usb-radio');
    const radio = await plugIn(path);
    const { link, untilUp } = listen({ kind: 'serial', path });
    await untilUp();
    await radio.toggleReading();
    const command = heartbeat(7, 245);
    for (let count = 0; count < 20; count += 1) link.send(command);
    link.discard(path, performance.now());
    await radio.toggleReading();
    await untilUp();
    await eventually('the device receives later frames', () => {
      link.send(heartbeat(8, 245));
      return radio.got().includes(Buffer.from(heartbeat(8, 245)));
    });
    expect(radio.got().includes(Buffer.from(command))).toBe(false);
  });

  it('tries its baud rates in order until it receives MAVLink', { tags: 'long' }, async () => {
    const path = join(dir, 'usb-radio');
    const radio = await plugIn(path);
    const options = { kind: 'serial', path, baud: [57_600, 115_200] };
    const { untilUp, untilReceived } = listen(options);
    await untilUp();
    const rateOfPort = async (): Promise<string> => {
      const child = spawn(program('stty'), ['-F', path, 'speed']);
      const [rate] = (await once(child.stdout, 'data')) as [Buffer];
      return rate.toString().trim();
    };
    expect(await rateOfPort()).toBe('57600');
    await eventually('the next rate is tried', async () => (await rateOfPort()) === '115200');
    radio.send(heartbeat(1));
    await untilReceived(1);
  });
});
