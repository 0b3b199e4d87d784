/** Runs the links driver in a process of its own, which may live in a network namespace, and prints each report as a line. */
import { join } from 'node:path';
import { links } from '../../../drivers/links/links.ts';
import type { noFeeds } from '../../../src/contract/feeds.ts';
import type { DriverHost } from '../../../src/toolkit/driver/driver.ts';

const [options_text = '{}', state_dir = '.'] = process.argv.slice(2);
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
  retract: silent,
  reportLocation: silent,
  serveGateway: silent,
  publishGateway: silent,
  linkType: () => null,
  stateFile: (name) => join(state_dir, name),
  reportStatus: silent,
  onOptions: () => undefined,
};
await links.configure(JSON.parse(options_text))(host);
