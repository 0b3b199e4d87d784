/** The service as a process, with a key for all kits; it can be killed and started again, and keeps its port and its database. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeKey } from '../../../src/cloud/principal.ts';
import { scopes } from '../../../src/cloud/scopes.ts';
import { type Child, startChild } from '../child.ts';
import { bundledPrograms } from '../kit/bundled.ts';

export interface ServiceProcess {
  /** On the loopback. */
  readonly url: string;
  readonly key: string;
  /** Everything that was printed, over all starts. */
  output(): string;
  /** Resolves once it is connected to the broker. */
  start(): Promise<void>;
  end(signal: NodeJS.Signals): Promise<void>;
  /** Asks the API, below `/api/kits/`. */
  ask(path: string, init?: { readonly method?: string; readonly body?: object }): Promise<Response>;
}

/** `settings`: what its file has beside the address and the database, which is `service.db` in `dir`. */
export async function serviceProcess(
  dir: string,
  { port, ...settings }: { readonly port: number; readonly [key: string]: unknown },
): Promise<ServiceProcess> {
  const { command } = await bundledPrograms();
  const [config, first_key_file] = [join(dir, 'service.yaml'), join(dir, 'service-key')];
  const key = makeKey({ label: 'ops', scopes: [...scopes], kits: '*', expires_ms: null }, Date.now()).text;
  await writeFile(first_key_file, key, { mode: 0o600 });
  const text = {
    database: join(dir, 'service.db'),
    listen: `127.0.0.1:${port}`,
    first_key_file,
    limits: { reads_per_s: 1_000 },
    ...settings,
  };
  await writeFile(config, JSON.stringify(text));
  const url = `${'tls' in settings ? 'https' : 'http'}://127.0.0.1:${port}`;
  let child: Child | undefined;
  let printed = '';
  return {
    url,
    key,
    output: () => printed + (child?.output() ?? ''),
    async start() {
      child = startChild([command, 'service', '--config', config]);
      await child.printed(/service connected to the broker/u);
    },
    async end(signal) {
      await child?.end(signal);
      printed += child?.output() ?? '';
      child = undefined;
    },
    ask: async (path, { method, body } = {}) =>
      fetch(`${url}/api/kits/${path}`, {
        method: method ?? (body ? 'POST' : 'GET'),
        headers: { 'x-api-key': key, ...(body && { 'content-type': 'application/json' }) },
        ...(body && { body: JSON.stringify(body) }),
      }),
  };
}
