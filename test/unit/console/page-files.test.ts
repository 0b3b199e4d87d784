/** How the page's files are served. */
import { get, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { chooseEncoding, loadPage } from '../../../src/cloud/http/page/page-files.ts';
import { kit_id } from '../../support/contract-samples.ts';
import { type ServiceLab, startServiceLab } from '../../support/service/service-lab.ts';

let lab: ServiceLab;
beforeAll(async () => {
  lab = await startServiceLab(kit_id);
});
afterAll(async () => lab.stop());

/** As they come over the wire, not unpacked. */
async function ask(path: string, headers: Record<string, string> = {}) {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  get(lab.url + path, { headers }, resolve).on('error', reject);
  const answer = await promise;
  return { status: answer.statusCode, headers: answer.headers, body: await text(answer) };
}

it('names the files of the first screen in its first one, and serves every file with its type', async () => {
  const { body, headers } = await ask('/');
  expect(headers).toMatchObject({ 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-cache' });
  const addresses = new Set(
    [...body.matchAll(/(?:href|src)="(\/page\/[^"]+)"/gu)].map(([, address]) => address ?? ''),
  );
  const { files } = await loadPage();
  const base = [...addresses].find((address) => address.endsWith('/main.js'))?.replace('main.js', '') ?? '';
  expect(addresses).toContain(`${base}views/overview/overview-view.js`);
  expect(addresses).not.toContain(`${base}views/asset/asset-view.js`);
  for (const name of files.keys()) {
    const address = base + name;
    const file = await ask(address);
    expect(file.status).toBe(200);
    const type = address.endsWith('.css') ? 'text/css' : 'text/javascript';
    expect(file.headers['content-type']).toBe(`${type}; charset=utf-8`);
    expect(file.headers['cache-control']).toContain('immutable');
    expect(file.body).not.toContain('sourceMappingURL');
  }
});

it('imports nothing that is not served', async () => {
  const { files, library } = await loadPage();
  const isServed = (name: string): boolean => files.has(name) || library(name) !== undefined;
  for (const [name, { bodies }] of files) {
    const imports = bodies.identity.toString().matchAll(/(?:^import\s[^;]*?from|import\()\s*'(\..+?)'/gmu);
    for (const [, specifier = ''] of imports) expect(isServed(join(dirname(name), specifier))).toBe(true);
  }
});

it('joins the style sheets of the first view but the last, which others are put before', async () => {
  const { index, files } = await loadPage();
  const links = [
    ...index.bodies.identity.toString().matchAll(/rel="stylesheet" href="\/page\/[^/]+\/([^"]+)"/gu),
  ];
  expect(links.map(([, name]) => name)).toEqual(['styles.css', 'styles/screens.css']);
  expect(files.has('styles/asset.css')).toBe(true);
  expect(files.has('styles/tokens.css')).toBe(false);
  const styles = files.get('styles.css')?.bodies.identity.toString() ?? '';
  // The colours come first, the box of the map late.
  expect(styles.indexOf('--ground')).toBeGreaterThanOrEqual(0);
  expect(styles.indexOf('--ground')).toBeLessThan(styles.indexOf('.mapbox'));
});

it('sends no file again that the browser has, and compresses as the browser takes it', async () => {
  const first = await ask('/', { 'accept-encoding': 'gzip, deflate' });
  expect(first.headers['content-encoding']).toBe('gzip');
  const again = await ask('/', { 'accept-encoding': 'gzip', 'if-none-match': first.headers.etag ?? '' });
  expect([again.status, again.body]).toEqual([304, '']);
});

it.each([
  [undefined, 'identity'],
  ['gzip, deflate, br, zstd', 'br'],
  ['gzip;q=1.0, br;q=0', 'gzip'],
  ['deflate', 'identity'],
])('answers Accept-Encoding %s with %s', (accepted, encoding) => {
  expect(chooseEncoding(accepted)).toBe(encoding);
});

it('gives every card an id or a key, so that one that appears leaves the buttons of the others as they are', async () => {
  const { files } = await loadPage();
  const sections = [...files].flatMap(([name, { bodies }]) =>
    name.startsWith('views/')
      ? [...bodies.identity.toString().matchAll(/<section\s[^>]*/gu)].map(([text]) => `${name}: ${text}`)
      : [],
  );
  expect(sections.length).toBeGreaterThan(20);
  expect(sections.filter((text) => !/\s(?:id|key)=/u.test(text))).toEqual([]);
});
