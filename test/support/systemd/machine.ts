/** A whole machine under emulation, with a kernel, devices and a clock of its own, on which the package is installed. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { within } from '../../../src/platform/time.ts';
import { makeImage, script_s } from './machine-image.ts';
import { amd64, type MachineKind } from './machine-kind.ts';
import { dyingWithUs, program } from '../peers.ts';
import { makeDirectory } from '../temporary.ts';

export interface Outcome {
  readonly code: number;
  readonly output: string;
}

export interface Machine {
  /** A script for the shell inside: answers its exit code and what it printed on both outputs. */
  readonly attempt: (script: string) => Promise<Outcome>;
  /** The same for what has to succeed: answers what it printed, trimmed. */
  readonly sh: (script: string) => Promise<string>;
  readonly stop: () => Promise<void>;
}

/** For a boot with an emulated processor on a machine that is busy with other things. */
const boot_ms = 3_600_000;
const answer_ms = (script_s + 30) * 1_000;
const stop_ms = 30_000;
const console_chars_max = 200_000;

/** Boots one on which the packages `debs` are installed. Resolves when it takes orders. */
export async function startMachine(debs: readonly string[], kind: MachineKind = amd64): Promise<Machine> {
  const dir = await makeDirectory();
  const image = await makeImage(dir, debs, kind);
  const port = join(dir, 'agent.sock');
  const server = createServer();
  server.listen(port);
  await once(server, 'listening');
  const [command = '', ...args] = [
    ...dyingWithUs(),
    program(kind.emulator),
    ...kind.hardware,
    '-append',
    `console=${kind.console} panic=-1 quiet mitigations=off`,
    '-kernel',
    image.kernel,
    '-initrd',
    image.first_root,
    '-drive',
    `file=${image.disk},format=raw,if=virtio,cache=unsafe`,
    '-chardev',
    `socket,id=agent,path=${port}`,
    '-serial',
    'stdio',
    ...kind.agent_args,
  ];
  const began_ms = performance.now();
  const agent = once(server, 'connection') as Promise<[Socket]>;
  const emulator = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let console_text = '';
  for (const stream of [emulator.stdout, emulator.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      if (console_text.length < console_chars_max) console_text += chunk.toString();
    });
  }
  const ended = once(emulator, 'exit');
  const stop = async (): Promise<void> => {
    emulator.kill('SIGTERM');
    if (!(await within(stop_ms, ended))) emulator.kill('SIGKILL');
    server.close();
    await rm(dir, { recursive: true, force: true });
  };
  const gone = ended.then(() => undefined);
  const ask = await within(
    boot_ms,
    Promise.race([agent.then(async ([socket]) => conversation(socket)), gone]),
  );
  if (ask === undefined) {
    await stop();
    throw new Error(`the machine did not start: ${console_text}`);
  }
  console.info(`${kind.architecture}: booted in ${Math.round((performance.now() - began_ms) / 1_000)} s`);
  const attempt = async (script: string): Promise<Outcome> => {
    const answer = await within(answer_ms, Promise.race([ask(script), gone]));
    if (answer === undefined) throw new Error(`no answer to ${script}\n${console_text}`);
    return answer;
  };
  return {
    attempt,
    async sh(script) {
      const { code, output } = await attempt(script);
      if (code !== 0) throw new Error(`${script} ended with ${code}: ${output}`);
      return output;
    },
    stop,
  };
}

/** Waits until the agent is ready; answers the function that asks it, one question after the other. */
async function conversation(socket: Socket): Promise<(script: string) => Promise<Outcome>> {
  const lines = createInterface({ input: socket })[Symbol.asyncIterator]();
  // The firmware and the kernel may say something on this port too.
  for (;;) {
    const { value, done } = await lines.next();
    if (done === true) throw new Error('the machine ended while it booted');
    if (value.trim() === 'ready') break;
  }
  return async (script) => {
    socket.write(`${Buffer.from(script).toString('base64')}\n`);
    const { value, done } = await lines.next();
    if (done === true) throw new Error(`the machine ended during ${script}`);
    const [code = '', output = ''] = value.split(' ');
    return { code: Number(code), output: Buffer.from(output, 'base64').toString().trim() };
  };
}
