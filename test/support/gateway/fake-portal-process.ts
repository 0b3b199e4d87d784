/** A captive portal: answers every request with a redirect to its login page. Argument: its port. Ends with its standard input. */
import { once } from 'node:events';
import { createServer } from 'node:http';

const server = createServer((request, response) => {
  request.on('error', () => undefined).resume();
  response.writeHead(302, { location: 'http://portal.example/login' }).end();
}).listen(Number(process.argv[2]), '::');
await once(server, 'listening');
process.stdin.resume().on('end', () => process.exit());
console.log('ready');
