/**
 * One end of a tunnel of DS-Lite (RFC 6333): what is sent to a TUN device leaves this namespace in packets of IPv6, and the other way
 * round. In UDP, since kernels of test machines have no `ip6tnl`. Arguments: the device, our address, the address of the other end.
 */
import { createSocket } from 'node:dgram';
import { openTun } from './tun-device.ts';

const port = 4_004;
const [device = '', local, remote] = process.argv.slice(2);
const outer = createSocket('udp6');
// What is sent while the link below is down is lost, as in a tunnel of the kernel.
outer.on('error', () => undefined);
const inner = openTun(device, 'tun', (packet) => outer.send(packet, port, remote, () => undefined));
outer.on('message', (packet) => inner.send(packet));
outer.bind(port, local, () => console.log('ready'));
process.stdin.on('end', () => process.exit()).resume();
