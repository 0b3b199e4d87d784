/** A vehicle on the far end of the emulated machine's USB cable: what the gadget side of /dev/ttyACM0 says. */
import type { Machine } from './machine.ts';

/** While this file is there, the vehicle takes nothing of what it is sent. */
const deaf = '/run/vehicle-is-deaf';

/**
 * Runs inside, on the package's own Node.js. Frames as https://mavlink.io/en/guide/serialization.html has them, with the
 * checksum seeds of HEARTBEAT and GLOBAL_POSITION_INT.
 */
const script = `
const { closeSync, constants, existsSync, openSync, readSync, writeSync } = require('node:fs');
const open = () => openSync('/dev/ttyGS0', constants.O_RDWR | constants.O_NOCTTY | constants.O_NONBLOCK);
let fd = open();
const onPort = (work) => {
  try {
    work();
  } catch (error) {
    // EAGAIN: nobody reads, or there is nothing to read. Anything else: the terminal was hung up, and only another open heals that.
    if (error.code === 'EAGAIN') return;
    closeSync(fd);
    fd = open();
  }
};
let seq = 0;
const say = (id, seed, payload) => {
  const head = [payload.length, 0, 0, seq++ & 0xff, 1, 1, id, 0, 0];
  let crc = 0xffff;
  for (const byte of [...head, ...payload, seed]) {
    let mixed = (byte ^ crc) & 0xff;
    mixed = (mixed ^ (mixed << 4)) & 0xff;
    crc = (crc >> 8) ^ (mixed << 8) ^ (mixed << 3) ^ (mixed >> 4);
  }
  onPort(() => writeSync(fd, Buffer.from([0xfd, ...head, ...payload, crc & 0xff, crc >> 8])));
};
const began = performance.now();
const position = Buffer.alloc(28);
[473977420, 85455940, 488000, 1000].forEach((value, index) => position.writeInt32LE(value, 4 + 4 * index));
// A quadrotor of ArduPilot, hovering.
setInterval(() => say(0, 50, [5, 0, 0, 0, 2, 3, 81, 4, 3]), 1_000);
setInterval(() => {
  position.writeUInt32LE(performance.now() - began, 0);
  say(33, 104, position);
}, 250);
const heard = Buffer.alloc(4_096);
setInterval(() => existsSync('${deaf}') || onPort(() => readSync(fd, heard)), 100);
`;

/** Plugs it in; the kernel's modules for serial ports are loaded only now. */
export async function plugInVehicle({ sh }: Machine): Promise<void> {
  await sh(`modprobe dummy_hcd && modprobe g_serial
for _ in $(seq 60); do [ -c /dev/ttyGS0 ] && break; sleep 0.5; done
stty -F /dev/ttyGS0 raw -echo
cat >/root/vehicle.cjs <<'END'
${script}
END
systemd-run --quiet --unit=vehicle /usr/lib/kit-connector/bin/node /root/vehicle.cjs`);
}

/** Pulls it out: the device and its node vanish under whoever has it open. */
export async function unplugVehicle({ sh }: Machine): Promise<void> {
  await sh('systemctl stop vehicle && modprobe --remove g_serial');
}

/** It says nothing and takes nothing from now on, as if it had been switched off. */
export async function silenceVehicle({ sh }: Machine): Promise<void> {
  await sh('systemctl kill --signal=STOP vehicle');
}

/** It goes on after `silenceVehicle`. */
export async function wakeVehicle({ sh }: Machine): Promise<void> {
  await sh('systemctl kill --signal=CONT vehicle');
}

/** Runs `fn` while the vehicle takes nothing, and all that lies between it and the daemon is full. */
export async function whileDeaf({ sh }: Machine, fn: () => Promise<void>): Promise<void> {
  await sh(`touch ${deaf}
for _ in $(seq 60); do
  dd if=/dev/zero of=/dev/ttyACM0 bs=64 oflag=nonblock 2>&1 | grep -q '^0+0 records out' && exit 0
  sleep 0.5
done
exit 1`);
  await fn();
  await sh(`rm ${deaf}`);
}
