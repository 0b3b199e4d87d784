/** A station that reads what an endpoint sends, in a process of its own: `udp` or `tcp`, then the port. Reports its frames each 100 ms. */
import { createSocket } from 'node:dgram';
import { connect } from 'node:net';
import { StreamFramer, parseDatagram } from '../../../drivers/mavlink/wire/framer.ts';
import { encode } from '../../../drivers/mavlink/wire/messages.ts';

const [, , kind, port_text] = process.argv;
const port = Number(port_text);
/** A heartbeat of a ground station, so that a UDP endpoint knows this address. */
const about = { custom_mode: 0, type: 6, autopilot: 8, base_mode: 0, system_status: 4, mavlink_version: 3 };
const beat = encode('HEARTBEAT', about, { sysid: 255, compid: 190, seq: 0 });
let frames = 0;
const sink = {
  tally: { skipped: () => undefined, badChecksum: () => undefined, unknownId: () => undefined },
  frame: () => {
    frames += 1;
  },
};
if (kind === 'udp') {
  const socket = createSocket({ type: 'udp4', recvBufferSize: 4_000_000 });
  socket.on('message', (bytes) => parseDatagram(bytes, sink));
  setInterval(() => socket.send(beat, port, '127.0.0.1'), 500);
  socket.send(beat, port, '127.0.0.1');
} else {
  const framer = new StreamFramer(sink);
  connect({ host: '127.0.0.1', port }).on('data', (chunk) => framer.push(chunk));
}
setInterval(() => process.send?.(frames), 100);
process.once('disconnect', () => process.exit());
