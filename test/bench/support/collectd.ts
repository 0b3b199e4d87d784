/** Another daemon with a part of our task, to be measured beside ours: collectd reads /proc and publishes to a broker. */
import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { dyingWithUs, program } from '../../support/peers.ts';
import { end } from './footprint-daemon.ts';

export interface Peer {
  readonly pid: number;
  stop(): Promise<void>;
}

/** Processor, memory, disks and interfaces, every ten seconds, with QoS 1. */
export async function startCollectd(dir: string, broker_port: number): Promise<Peer> {
  const file = join(dir, 'collectd.conf');
  const plugins = ['cpu', 'memory', 'df', 'disk', 'interface', 'load', 'uptime', 'thermal', 'mqtt'];
  await writeFile(
    file,
    [
      `BaseDir "${dir}"`,
      `PIDFile "${dir}/collectd.pid"`,
      'Interval 10',
      ...plugins.map((name) => `LoadPlugin ${name}`),
      '<Plugin mqtt>',
      '  <Publish "kit">',
      '    Host "127.0.0.1"',
      `    Port ${broker_port}`,
      '    QoS 1',
      '  </Publish>',
      '</Plugin>',
      '',
    ].join('\n'),
  );
  const [command, ...args] = [...dyingWithUs(), program('collectd'), '-f', '-C', file];
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'ignore'] });
  return { pid: child.pid ?? 0, stop: async () => end(child) };
}
