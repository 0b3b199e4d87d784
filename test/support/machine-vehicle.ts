/** A vehicle on the far end of the emulated machine's USB cable: what the gadget side of /dev/ttyACM0 says. */
import type { Machine } from './machine.ts';

/** Runs inside, on the package's own Node.js and library. */
const script = `
const { closeSync, constants, openSync, writeSync } = require('node:fs');
const { common, MavLinkProtocolV2, minimal } = require('/usr/lib/kit-connector/node_modules/node-mavlink');
const open = () => openSync('/dev/ttyGS0', constants.O_RDWR | constants.O_NOCTTY | constants.O_NONBLOCK);
let fd = open();
const protocol = new MavLinkProtocolV2(1, 1);
let seq = 0;
const say = (Message, fields) => {
  try {
    writeSync(fd, protocol.serialize(Object.assign(new Message(), fields), seq++ & 0xff));
  } catch (error) {
    // EAGAIN: nobody reads. Anything else: the terminal was hung up, and only another open heals that.
    if (error.code === 'EAGAIN') return;
    closeSync(fd);
    fd = open();
  }
};
setInterval(() => {
  say(minimal.Heartbeat, { type: 2, autopilot: 3, baseMode: 81, customMode: 5, systemStatus: 3, mavlinkVersion: 3 });
}, 1_000);
setInterval(() => {
  say(common.GlobalPositionInt, { timeBootMs: seq * 100, lat: 473977420, lon: 85455940, alt: 488000, relativeAlt: 1000 });
}, 250);
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
