/** Links over a serial port: a pseudo-terminal stands for the port, with another program at its other end. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { heartbeat } from './frames.ts';
import { listen } from './heard.ts';
import { eventually } from '../../../support/eventually.ts';
import { peerMissing, program } from '../../../support/peers.ts';
import { makeDirectory } from '../../../support/temporary.ts';

/**
 * Opens a pseudo-terminal, prints its name, then carries bytes between it and its own standard streams. On SIGUSR1 it
 * takes nothing any more, and the port is full; on the next one it takes everything again.
 */
const relay = `
import os, select, signal, sys, tty
master, port = os.openpty()
tty.setraw(port)
os.set_blocking(port, False)
class Turn(Exception): pass
def turn(*_): raise Turn
signal.signal(signal.SIGUSR1, turn)
sys.stdout.write(os.ttyname(port) + "\\n")
sys.stdout.flush()
ears = [0, master]
while True:
    try:
        for fd in select.select(ears, [], [])[0]:
            data = os.read(fd, 4096)
            if fd == 0 and not data:
                sys.exit()
            os.write(master if fd == 0 else 1, data)
    except Turn:
        ears = [0] if master in ears else [0, master]
        try:
            while master not in ears: os.write(port, bytes(4096))
        except BlockingIOError:
            pass
        sys.stderr.write("turned\\n")
`;

let over: AbortController;
let dir: string;
const relays: ChildProcessWithoutNullStreams[] = [];
beforeEach(async () => {
  over = new AbortController();
  dir = await makeDirectory();
});
afterEach(async () => {
  over.abort();
  for (const child of relays.splice(0)) child.kill();
  await rm(dir, { recursive: true });
});

/** A radio whose port appears under `path`, as udev names ports by their device. */
async function plugIn(path: string) {
  const child = spawn(program('python3'), ['-u', '-c', relay]);
  relays.push(child);
  const [first] = (await once(child.stdout, 'data')) as [Buffer];
  await symlink(first.toString().trim(), path);
  const got: Buffer[] = [];
  child.stdout.on('data', (bytes: Buffer) => got.push(bytes));
  return {
    say: (bytes: Uint8Array) => void child.stdin.write(bytes),
    got: () => Buffer.concat(got),
    /** It takes nothing from now on; or everything again. */
    async turn() {
      const turned = once(child.stderr, 'data');
      child.kill('SIGUSR1');
      await turned;
    },
    /** The port's name is gone, and nobody tells those who have it open. */
    vanish: async () => rm(path),
    async unplug() {
      // First the name: the kernel may give the number of a closed pseudo-terminal to somebody else at once.
      await rm(path);
      child.kill();
      await once(child, 'exit');
    },
  };
}

describe.skipIf(peerMissing('python3'))('a serial link', () => {
  it('waits for its radio, speaks both ways, and comes back when the radio is plugged in again', async () => {
    const path = join(dir, 'usb-radio');
    const { link, heard, states, untilDown, untilUp, untilHeard } = listen(
      { kind: 'serial', path },
      { signal: over.signal },
    );
    await untilDown();
    expect(states[0]?.[1]).toContain(`serial port ${path}: `);
    const radio = await plugIn(path);
    await untilUp();
    radio.say(heartbeat(1));
    await untilHeard(1);
    expect(heard).toEqual([{ seq: 1, sysid: 1, peer: path, signature_ok: null }]);
    link.send(heartbeat(2, 245));
    await eventually('the radio has it', () => radio.got().equals(heartbeat(2, 245)));
    await radio.unplug();
    await untilDown();
    const again = await plugIn(path);
    await untilUp(2);
    again.say(heartbeat(3));
    await untilHeard(2);
    expect(states.map(([up]) => up)).toEqual([false, true, false, true]);
    over.abort();
    await link.ended;
  });

  it('is down when its port has vanished although no error tells so', async () => {
    const path = join(dir, 'usb-radio');
    const radio = await plugIn(path);
    const { states, untilDown, untilUp } = listen({ kind: 'serial', path }, { signal: over.signal });
    await untilUp();
    await radio.vanish();
    await untilDown();
    expect(states.at(-1)?.[1]).toContain('it was unplugged');
  });

  it('hears a device that takes nothing, and keeps no old orders for it', async () => {
    const path = join(dir, 'usb-radio');
    const radio = await plugIn(path);
    const { link, untilUp, untilHeard } = listen({ kind: 'serial', path }, { signal: over.signal });
    await untilUp();
    await radio.turn();
    await eventually('nothing more is sent to it', () => {
      link.send(heartbeat(2, 245));
      return link.stats().unsent > 0;
    });
    expect(link.stats().bytes_out).toBeLessThan(4_096);
    radio.say(heartbeat(1));
    await untilHeard(1);
    await radio.turn();
    await eventually('it takes orders again', () => {
      link.send(heartbeat(3, 245));
      return radio.got().includes(Buffer.from(heartbeat(3, 245)));
    });
    over.abort();
    await link.ended;
  });

  it('tries its baud rates one after the other until it hears MAVLink', async () => {
    const path = join(dir, 'usb-radio');
    const radio = await plugIn(path);
    const options = { kind: 'serial', path, baud: [57_600, 115_200] };
    const { untilUp, untilHeard } = listen(options, { signal: over.signal });
    await untilUp();
    const rateOfPort = async (): Promise<string> => {
      const child = spawn(program('stty'), ['-F', path, 'speed']);
      const [rate] = (await once(child.stdout, 'data')) as [Buffer];
      return rate.toString().trim();
    };
    expect(await rateOfPort()).toBe('57600');
    await eventually('the next rate is tried', async () => (await rateOfPort()) === '115200');
    radio.say(heartbeat(1));
    await untilHeard(1);
  });
});
