/**
 * Ports for servers and devices that tests start. Each is handed out once while the process that asked for it lives, and no
 * connection of another test can take it before it is bound: the kernel gives sockets that do not choose higher ports.
 */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type ListenOptions } from 'node:net';

const lowest = 10_000;
const block_ports = 32;
/** What the kernel gives begins here, unless this machine is configured otherwise. */
const usual_end = 32_768;
const least_blocks = 64;
const blocks = blocksBelow(lowestOfKernel());

let block: Promise<number> | undefined;
let used = 0;

/** Returns a port of the loopback that is free, for TCP and for UDP. */
export async function freePort(): Promise<number> {
  for (;;) {
    if (block === undefined || used === block_ports) [block, used] = [claimBlock(), 0];
    const offset = used++;
    const port = (await block) + offset;
    if (await isFree(port)) return port;
  }
}

/** Claims a block for this process. A socket with an abstract name is the claim: the kernel ends it with the process, however that ends. */
async function claimBlock(): Promise<number> {
  const begin = Math.floor(Math.random() * blocks);
  for (let i = 0; i < blocks; i += 1) {
    const first = lowest + ((begin + i) % blocks) * block_ports;
    if (await isHeld({ path: `\0kit-connector-test-ports-${first}` })) return first;
  }
  throw new Error('other tests have claimed all ports');
}

async function isHeld(options: ListenOptions): Promise<boolean> {
  const server = createServer().unref();
  server.listen(options);
  return once(server, 'listening').then(
    () => true,
    () => false,
  );
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1');
  const socket = createSocket('udp4').bind(port, '127.0.0.1');
  const bound = await Promise.allSettled([once(server, 'listening'), once(socket, 'listening')]);
  const closed = [once(server, 'close'), once(socket, 'close')];
  server.close();
  socket.close();
  await Promise.all(closed);
  return bound.every(({ status }) => status === 'fulfilled');
}

function lowestOfKernel(): number {
  return Number(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').trim().split(/\s+/u)[0]);
}

/** Where the kernel leaves hardly any ports below its own, claims alone must do. */
function blocksBelow(end: number): number {
  const count = Math.floor((end - lowest) / block_ports);
  return count < least_blocks ? Math.floor((usual_end - lowest) / block_ports) : count;
}
