/** Free loopback ports for the service and the simulated devices of a demo, so that several demos can run, and start, at a time. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { loopback } from '../daemon/embedded-broker.ts';

/** Below the ports that the kernel gives to sockets that do not choose: one of those could be taken before it is used here. */
const [lowest, highest] = [8_081, 9_999];
const tries = 200;
const claimed = new Set<number>();

export async function freeTcpPort(): Promise<number> {
  return freePort(isFreeTcp);
}

export async function freeUdpPort(): Promise<number> {
  return freePort(isFreeUdp);
}

/** Whether this demo may use the port: no program listens on it, and no other demo is about to. */
export async function isUsable(port: number): Promise<boolean> {
  return (claimed.has(port) || (await claim(port))) && isFreeTcp(port);
}

async function freePort(isFree: (port: number) => Promise<boolean>): Promise<number> {
  for (let attempt = 0; attempt < tries; attempt += 1) {
    const port = lowest + Math.floor(Math.random() * (highest - lowest + 1));
    if (!claimed.has(port) && (await claim(port)) && (await isFree(port))) return port;
  }
  throw new Error(`no port between ${lowest} and ${highest} is free on ${loopback}`);
}

/** Claims it among all demos of this machine. A socket with an abstract name is the claim: it ends with the process, however that ends. */
async function claim(port: number): Promise<boolean> {
  if (process.platform === 'linux') {
    const holder = createServer().unref();
    holder.listen({ path: claimOf(port) });
    if (!(await isListening(holder))) return false;
  }
  claimed.add(port);
  return true;
}

/** The name of the claim; a second demo finds it taken. */
export function claimOf(port: number): string {
  return `\0kit-connector-demo-${port}`;
}

async function isFreeTcp(port: number): Promise<boolean> {
  const server = createServer().listen(port, loopback);
  const isFree = await isListening(server);
  if (isFree) await new Promise((resolve) => server.close(resolve));
  return isFree;
}

async function isFreeUdp(port: number): Promise<boolean> {
  const socket = createSocket('udp4').bind(port, loopback);
  const isFree = await isListening(socket);
  await new Promise<void>((resolve) => {
    socket.close(resolve);
  });
  return isFree;
}

async function isListening(socket: NodeJS.EventEmitter): Promise<boolean> {
  return once(socket, 'listening').then(
    () => true,
    () => false,
  );
}
