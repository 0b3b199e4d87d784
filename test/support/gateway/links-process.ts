/**
 * Runs the links driver in a process of its own, which may live in a network namespace, and prints each report as a line. The third
 * argument, an address, is asked a question by HTTP again and again over one connection of this process, as a session does.
 */
import { connect } from 'node:net';
import { join } from 'node:path';
import { links } from '../../../drivers/links/links.ts';
import type { noFeeds } from '../../../src/contract/feeds.ts';
import { every } from '../../../src/platform/time.ts';
import type { DriverHost } from '../../../src/toolkit/driver/driver.ts';
import { lab_ports } from './wan-lab.ts';

const [options_text = '{}', state_dir = '.', session_ip] = process.argv.slice(2);
const stopping = new AbortController();
process.once('SIGTERM', () => stopping.abort());
process.stdin.once('end', () => stopping.abort()).resume();

const reasons: Record<string, string | null> = {};
const silent = (): void => undefined;
const host: DriverHost<typeof noFeeds> = {
  signal: stopping.signal,
  log: { debug: silent, info: silent, warn: silent, error: silent },
  announce: () => {
    throw new Error('the links driver announces nothing');
  },
  reportKit: ({ wans }) => console.log(JSON.stringify({ wans, reasons })),
  reportLink: ({ name, reason }) => void Object.assign(reasons, { [name]: reason ?? null }),
  files: { add: async () => '' },
  retract: silent,
  reportLocation: silent,
  serveGateway: silent,
  publishGateway: silent,
  linkType: () => null,
  stateFile: (name) => join(state_dir, name),
  reportStatus: silent,
  onOptions: () => undefined,
};
if (session_ip !== undefined) {
  const session = connect(lab_ports.what_is_my_ip, session_ip).on('error', silent).resume();
  every(200, stopping.signal, () => void session.write('GET / HTTP/1.1\r\nHost: internet\r\n\r\n'));
  stopping.signal.addEventListener('abort', () => session.destroy());
}
await links.configure(JSON.parse(options_text))(host);
