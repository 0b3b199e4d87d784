/** The help that the service gives to browsers, also where there is no network. */
import { readdir } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { kit_id } from '../../../support/contract-samples.ts';
import { type ServiceLab, startServiceLab } from '../../../support/service/service-lab.ts';

const help = new URL('../../../../src/help/', import.meta.url);
let lab: ServiceLab;
beforeAll(async () => {
  lab = await startServiceLab(kit_id);
});
afterAll(async () => lab.stop());

async function get(path: string) {
  const answer = await fetch(lab.url + path);
  return { status: answer.status, type: answer.headers.get('content-type') ?? '', text: await answer.text() };
}

test('every page, picture and link of the help is served without a key, and nothing else', async () => {
  const seen = new Map<string, string>();
  const waiting = ['/help/'];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (seen.has(path)) continue;
    const { status, type, text } = await get(path);
    expect([path, status]).toEqual([path, 200]);
    seen.set(path, type);
    if (!type.startsWith('text/html')) continue;
    expect(text).not.toMatch(/<script|style="| on\w+="/u);
    for (const [, to = ''] of text.matchAll(/(?:href|src)="([^"#]+)/gu)) {
      const { pathname, origin } = new URL(to, `http://localhost${path}`);
      if (origin === 'http://localhost' && pathname !== '/') waiting.push(pathname);
    }
  }
  const files = (await readdir(help)).map((name) => (name === 'README.md' ? '/help/' : `/help/${name}`));
  expect(new Set(seen.keys())).toEqual(new Set([...files, '/help/help.css']));
  expect(seen.get('/help/console-kit.png')).toBe('image/png');
  expect((await get('/help/README.md')).status).toBe(404);
  expect((await get('/help/..%2FREADME.md')).status).toBe(404);
});

test('a page has its title, its tables, and the place of what is not served', async () => {
  const { text } = await get('/help/troubleshooting.md');
  expect(text).toContain('<title>Troubleshooting</title>');
  expect(text).toContain('<th>symptom</th>');
  expect(text).toContain('<a href="/help/degraded.md">');
  expect(text).toContain(
    '<code>/usr/share/doc/kit-connector-runtime/systemd/README.md#the-id-of-a-kit</code>',
  );
});
