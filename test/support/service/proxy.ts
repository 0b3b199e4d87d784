/** A real nginx or HAProxy on loopback, with the sample of the repository: only names, ports and paths are replaced. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { eventually } from '../eventually.ts';
import type { KeyPair } from '../certificates.ts';
import { dyingWithUs, program } from '../peers.ts';
import { freePort } from '../ports.ts';

export const served_name = 'kits.example.com';
const samples = new URL('../../../systemd/proxy/', import.meta.url);

export interface ProxyParts {
  readonly kind: 'nginx' | 'haproxy';
  /** Empty; for its files. */
  readonly dir: string;
  readonly pair: KeyPair;
  /** Port of the service. */
  readonly service_port: number;
}

export interface Proxy {
  readonly port: number;
  readonly stop: () => Promise<void>;
}

export async function startProxy(parts: ProxyParts): Promise<Proxy> {
  const port = await freePort();
  const args = parts.kind === 'nginx' ? await nginx(parts, port) : await haproxy(parts, port);
  const [command = '', ...words] = [...dyingWithUs(), program(parts.kind), ...args];
  const child = spawn(command, words, { stdio: ['ignore', 'pipe', 'pipe'] });
  const said: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => said.push(chunk.toString()));
  }
  await eventually('the proxy listens', async () => {
    if (child.exitCode !== null) throw new Error(said.join(''));
    return canConnect(port);
  });
  return {
    port,
    async stop() {
      if (child.exitCode !== null) return;
      child.kill('SIGTERM');
      await once(child, 'close');
    },
  };
}

/** The sample is a site: a file of its own includes it, as that of Debian does. */
async function nginx({ dir, pair, service_port }: ProxyParts, port: number): Promise<readonly string[]> {
  const site = replaced(await readFile(new URL('nginx.conf', samples), 'utf8'), [
    ['listen 443 ssl;', `listen 127.0.0.1:${port} ssl;`],
    ['    listen [::]:443 ssl;\n', ''],
    ['/etc/ssl/kits.example.com/fullchain.pem', pair.cert],
    ['/etc/ssl/kits.example.com/privkey.pem', pair.key],
    ['127.0.0.1:8080', `127.0.0.1:${service_port}`],
  ]);
  await writeFile(join(dir, 'site.conf'), site);
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${join(dir, name)};`)
    .join('\n');
  const main = join(dir, 'nginx.conf');
  await writeFile(
    main,
    `daemon off; master_process off; pid ${join(dir, 'nginx.pid')}; error_log stderr;
events { worker_connections 256; }
http { access_log off; ${temporary} include ${join(dir, 'site.conf')}; }
`,
  );
  await mkdir(join(dir, 'log'));
  return ['-c', main, '-p', dir, '-e', 'stderr'];
}

async function haproxy({ dir, pair, service_port }: ProxyParts, port: number): Promise<readonly string[]> {
  const both = join(dir, 'both.pem');
  await writeFile(both, (await readFile(pair.cert, 'utf8')) + (await readFile(pair.key, 'utf8')));
  const text = replaced(await readFile(new URL('haproxy.cfg', samples), 'utf8'), [
    ['bind :443', `bind 127.0.0.1:${port}`],
    ['/etc/haproxy/certs/kits.example.com.pem', both],
    ['127.0.0.1:8080', `127.0.0.1:${service_port}`],
  ]);
  const file = join(dir, 'haproxy.cfg');
  await writeFile(file, text);
  return ['-db', '-f', file];
}

function replaced(text: string, pairs: readonly (readonly [from: string, to: string])[]): string {
  let result = text;
  for (const [from, to] of pairs) {
    if (!result.includes(from)) throw new Error(`the sample has no "${from}" any more`);
    result = result.replaceAll(from, () => to);
  }
  return result;
}

async function canConnect(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
