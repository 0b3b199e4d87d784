/** Real proxies on free loopback ports: tinyproxy and squid (HTTP CONNECT), microsocks (SOCKS5). They end with the test. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { eventually } from '../eventually.ts';
import { dyingWithUs, program } from '../peers.ts';
import { freePort } from '../ports.ts';

export interface RunningProxy {
  readonly port: number;
  stop(): Promise<void>;
}

export interface ProxyLogin {
  readonly username: string;
  readonly password: string;
}

/** `ports`: the only ones that CONNECT may name; left out: any. */
export async function startTinyproxy(
  dir: string,
  { login, ports = [] }: { readonly login?: ProxyLogin; readonly ports?: readonly number[] } = {},
): Promise<RunningProxy> {
  return start('tinyproxy', async (port) => {
    const file = join(dir, `tinyproxy-${port}.conf`);
    const lines = [
      `Port ${port}`,
      'Listen 127.0.0.1',
      'Timeout 600',
      'LogLevel Warning',
      ...(login ? [`BasicAuth ${login.username} ${login.password}`] : []),
      ...ports.map((each) => `ConnectPort ${each}`),
    ];
    await writeFile(file, `${lines.join('\n')}\n`);
    return ['-d', '-c', file];
  });
}

export async function startSquid(dir: string): Promise<RunningProxy> {
  return start('squid', async (port) => {
    const file = join(dir, `squid-${port}.conf`);
    const lines = [
      `http_port 127.0.0.1:${port}`,
      'http_access allow all',
      'cache deny all',
      'access_log none',
      'cache_log /dev/null',
      'pid_filename none',
      'shutdown_lifetime 0 seconds',
      'pinger_enable off',
      'visible_hostname localhost',
    ];
    await writeFile(file, `${lines.join('\n')}\n`);
    // The name tells its shared memory from that of others.
    return ['-N', '-n', `kit${port}`, '-f', file];
  });
}

export async function startMicrosocks(login?: ProxyLogin): Promise<RunningProxy> {
  return start('microsocks', async (port) => [
    '-i',
    '127.0.0.1',
    '-p',
    String(port),
    ...(login ? ['-u', login.username, '-P', login.password] : []),
  ]);
}

async function start(
  name: string,
  argsFor: (port: number) => Promise<readonly string[]>,
): Promise<RunningProxy> {
  const port = await freePort();
  const [command = '', ...args] = [...dyingWithUs(), program(name), ...(await argsFor(port))];
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
  await eventually(`${name} listens`, async () => {
    if (child.exitCode !== null) throw new Error(`${name} ended at start: ${said}`);
    const knock = connect(port, '127.0.0.1');
    const isThere = await once(knock, 'connect').then(
      () => true,
      () => false,
    );
    knock.destroy();
    return isThere;
  });
  return {
    port,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
  };
}
