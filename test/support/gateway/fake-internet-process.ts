/**
 * The internet of the lab: answers STUN binding requests on port 3478, tells callers of port 8080 their address by HTTP,
 * gives them `/down?bytes=N` and `/generate_204` and takes what they post, and accepts and ends every connection to port 443. Arguments: its
 * IPv4 addresses. Ends with its standard input.
 */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';

const header_bytes = 20;
const binding_request = 0x0001;

/** A binding success with XOR-MAPPED-ADDRESS, for IPv4 callers. */
function bindingSuccess(request: Buffer, { address, port }: { address: string; port: number }): Buffer {
  const cookie = request.subarray(4, 8);
  const attribute = Buffer.alloc(12);
  attribute.writeUInt16BE(0x0020, 0);
  attribute.writeUInt16BE(8, 2);
  attribute[5] = 1;
  attribute.writeUInt16BE(port ^ cookie.readUInt16BE(0), 6);
  attribute.set(
    address.split('.').map((byte, at) => Number(byte) ^ (cookie[at] ?? 0)),
    8,
  );
  const header = Buffer.from(request.subarray(0, header_bytes));
  header.writeUInt16BE(0x0101, 0);
  header.writeUInt16BE(attribute.length, 2);
  return Buffer.concat([header, attribute]);
}

// One socket for each address: an answer must come from the address that was asked.
const stuns = process.argv.slice(2).map((address) => {
  const stun = createSocket('udp4');
  stun.on('message', (request, from) => {
    if (request.length < header_bytes || request.readUInt16BE(0) !== binding_request) return;
    stun.send(bindingSuccess(request, from), from.port, from.address);
  });
  return stun.bind(3478, address);
});
const web = createHttpServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://internet');
  request.on('error', () => undefined).resume();
  const address = request.socket.remoteAddress?.replace('::ffff:', '');
  const body = pathname === '/down' ? Buffer.alloc(Number(searchParams.get('bytes')), 7) : address;
  if (pathname === '/generate_204') response.writeHead(204);
  request.once('end', () => response.end(pathname === '/generate_204' ? undefined : body));
}).listen(8080, '::');
const accepting = createServer((socket) => {
  socket.on('error', () => undefined);
  socket.end();
}).listen(443, '::');
await Promise.all([...stuns, web, accepting].map(async (server) => once(server, 'listening')));
process.stdin.resume().on('end', () => process.exit());
console.log('ready');
