/** The process itself: Node version, signals and exit codes, seen from outside. */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { makeDirectory } from '../../support/temporary.ts';

const command = fileURLToPath(new URL('../../../src/kit-connector.mjs', import.meta.url));

/** A Node of before 24 on this machine, if there is one. */
const oldNode = ['/usr/bin/node', '/usr/local/bin/node'].find(
  (node) =>
    existsSync(node) && Number.parseInt(execFileSync(node, ['--version']).toString().slice(1), 10) < 24,
);

function start(node: string, ...args: readonly string[]) {
  const child = spawn(node, [command, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  let errors = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  const ended = new Promise<number | null>((resolve) => {
    child.once('close', resolve);
  });
  return { child, ended, output: () => output, errors: () => errors };
}

/** Resolves when the child's output holds `words`; rejects when it ends before. */
async function said(
  words: string,
  { child, output, errors, ended }: ReturnType<typeof start>,
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const look = (): void => {
      if (output().includes(words)) resolve();
    };
    child.stdout.on('data', look);
    look();
    void ended.then((code) => reject(new Error(`ended with ${code}: ${output()}${errors()}`)));
  });
}

test('an old Node version ends the start with one line that names the required one and how to get it', async ({
  skip,
}) => {
  skip(oldNode === undefined, 'no older Node is installed');
  const { ended, errors } = start(oldNode ?? '', 'status');
  expect(await ended).toBe(1);
  expect(errors()).toMatch(
    /^kit-connector needs Node 24 or newer, this is Node \d+\.\S+ \(.*\); run "npm ci".*\n$/,
  );
});

test('a connection to a name has the round trip of a satellite for each of its addresses', () => {
  const report = 'process.on("exit", () => console.log(net.getDefaultAutoSelectFamilyAttemptTimeout()))';
  const preload = `data:text/javascript,${encodeURIComponent(`import net from "node:net"; ${report}`)}`;
  const env = { ...process.env, NODE_OPTIONS: `--import=${preload}` };
  const output = execFileSync(process.execPath, [command, '--version'], { env }).toString();
  expect(output.trim().split('\n')).toContain('2000');
});

test('a configuration with faults ends the daemon with 78 before anything starts', async () => {
  const { ended, errors } = start(process.execPath, 'run', '--config', '/nowhere/config.yaml');
  expect(await ended).toBe(78);
  expect(errors()).toBe(
    '/nowhere/config.yaml: cannot be read (no such file or directory); create it or name another file\n',
  );
});

test('a directory that cannot be created stops the daemon with the key and the remedy', async () => {
  const dir = await makeDirectory();
  const file = join(dir, 'config.yaml');
  const kit_id = '3f0c1f6e-52a4-4c0e-9d6b-1f2a7c9e4b10';
  await writeFile(file, `kit_id: ${kit_id}\nstate_dir: /proc/kit/state\nruntime_dir: ${dir}/run\n`);
  const { ended, errors } = start(process.execPath, 'run', '--config', file);
  expect(await ended).toBe(1);
  expect(errors()).toMatch(
    /^state_dir: cannot create \/proc\/kit\/state \(.*\); create it, or choose another/,
  );
});

test('a daemon keeps its runtime_dir for itself, SIGHUP reloads its configuration, SIGTERM stops it and removes its socket', async () => {
  const dir = await makeDirectory();
  const file = join(dir, 'config.yaml');
  await writeFile(
    file,
    `kit_id: 3f0c1f6e-52a4-4c0e-9d6b-1f2a7c9e4b10\nstate_dir: ${dir}/state\nruntime_dir: ${dir}/run\n`,
  );
  const daemon = start(process.execPath, 'run', '--config', file);
  try {
    await said('kit-connector started', daemon);
    expect(existsSync(join(dir, 'run/control.sock'))).toBe(true);
    const second = start(process.execPath, 'run', '--config', file);
    expect(await second.ended).toBe(1);
    expect(second.errors()).toContain('another kit-connector listens on');
    daemon.child.kill('SIGHUP');
    await said('configuration reloaded', daemon);
    daemon.child.kill('SIGTERM');
    expect(await daemon.ended).toBe(0);
    expect(daemon.output()).toContain('kit-connector stopped');
    expect(existsSync(join(dir, 'run/control.sock'))).toBe(false);
  } finally {
    if (daemon.child.exitCode === null) daemon.child.kill('SIGKILL');
    await daemon.ended;
  }
});
