/** `kit-connector health`: whether the daemon or the service makes progress, for health checks of containers. */
import { once } from 'node:events';
import { connect } from 'node:tls';
import { isStandaloneFile, readListen } from '../kit/config/standalone.ts';
import { messageOf } from '../platform/errors.ts';
import { printableTexts } from '../platform/foreign-text.ts';
import { type DaemonOptions, findDaemon } from './daemon/client.ts';
import { complain, exit, say, type Shell } from './terminal/shell.ts';
import { texts } from './texts.ts';

/** Container engines give a check 30 s, Kubernetes one second unless its probe says otherwise. */
const answer_ms = 5_000;

/** A kit or a service without its broker is healthy: a restart would not bring the broker back. */
export async function health({ socket, config }: DaemonOptions, shell: Shell): Promise<number> {
  if (socket === undefined && (await isStandaloneFile(config))) return healthOfService(config, shell);
  const daemon = await findDaemon({ ...(socket && { socket }), config }, shell);
  const { fault, summary } = printableTexts(await daemon.health());
  if (fault === null) say(shell, `ok: ${summary}`);
  else complain(shell, fault);
  return fault === null ? exit.ok : exit.failed;
}

async function healthOfService(config: string, shell: Shell): Promise<number> {
  const { host, port, isSecure } = await readListen(config);
  const at = { host: host.replace(/^0\.0\.0\.0$/u, '127.0.0.1').replace(/^::$/u, '::1'), port };
  const signal = AbortSignal.any([shell.signal, AbortSignal.timeout(answer_ms)]);
  try {
    if (isSecure) await handshake(at, signal);
    else await answer(at, signal);
    say(shell, `ok: ${at.host}:${at.port}`);
    return exit.ok;
  } catch (error) {
    complain(shell, texts.no_answer(`${at.host}:${at.port}`, messageOf(error)));
    return exit.failed;
  }
}

interface Place {
  readonly host: string;
  readonly port: number;
}

async function answer({ host, port }: Place, signal: AbortSignal): Promise<void> {
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}/live`;
  const { status } = await fetch(url, { signal, redirect: 'error' });
  if (status !== 200) throw new Error(`status ${status}`);
}

/** The process answers it itself, and needs no certificate of a client until it has. */
async function handshake(at: Place, signal: AbortSignal): Promise<void> {
  const socket = connect({ ...at, rejectUnauthorized: false });
  try {
    await once(socket, 'secureConnect', { signal });
  } finally {
    socket.destroy();
  }
}
