/**
 * Packages from a signed repository: the service for many kits on a machine of the cloud, upgraded, beside a gateway, purged;
 * and machines that have the single package of before. Each describe is one container that lives through its tests.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { buildPackages } from '../../systemd/package/build.ts';
import { makeRepository } from '../../systemd/package/repository.ts';
import { targetNamed } from '../../systemd/package/target.ts';
import { type Container, containerMissing, startContainer } from '../support/systemd/container.ts';
import { buildSinglePackage } from '../support/systemd/packages.ts';
import { eventually } from '../support/eventually.ts';
import { peerMissing } from '../support/peers.ts';
import { makeDirectory, run } from '../support/temporary.ts';

const shared = join(import.meta.dirname, '../../dist/test-repository');
const gateway = 'kit-connector.service';
const many = 'kit-connector-service.service';
const config = '/etc/kit-connector-service/service.yaml';
const sample = `broker: { url: mqtt://127.0.0.1:1, username: cloud }\nlisten: 127.0.0.1:8080\n`;

const status = z.looseObject({ version: z.string(), outbox: z.looseObject({ buffered: z.number() }) });

const isMissing =
  containerMissing() || peerMissing('x86_64-linux-gnu-strip', 'apt-ftparchive', 'gpg', 'dpkg-deb');

describe.skipIf(isMissing)('from the repository', () => {
  const of = { gnupg: '', single: '' };

  beforeAll(async () => {
    const architecture = (await run('dpkg', '--print-architecture')).trim();
    const target = targetNamed(architecture);
    of.gnupg = await makeDirectory();
    process.env['GNUPGHOME'] = of.gnupg;
    await run(
      'gpg',
      '--batch',
      '--passphrase',
      '',
      '--quick-generate-key',
      'packages@kit.invalid',
      'ed25519',
      'sign',
    );
    await rm(shared, { recursive: true, force: true });
    of.single = await buildSinglePackage({ target, out: shared, compression: 'none' });
    // What apt sees first, and what it sees after the next release.
    for (const [repository, version] of [
      ['first', '0.2.1'],
      ['next', '0.2.2'],
    ] as const) {
      const debs = await buildPackages({ target, version, out: shared, compression: 'none' });
      await makeRepository(join(shared, repository), 'packages@kit.invalid', debs);
    }
  });
  afterAll(async () => {
    delete process.env['GNUPGHOME'];
    await rm(of.gnupg, { recursive: true, force: true });
  });

  const apt = 'DEBIAN_FRONTEND=noninteractive apt-get --yes --quiet --quiet --no-install-recommends';
  const take = async (inside: Container, repository: 'first' | 'next'): Promise<void> => {
    const source = `deb [signed-by=/packages/${repository}/kit-connector.asc] file:/packages/${repository} ./`;
    await inside.sh(`echo '${source}' >/etc/apt/sources.list && apt-get --quiet --quiet update`);
  };
  const isActive = async (inside: Container, unit: string): Promise<string> =>
    inside.run('systemctl', 'show', unit, '--property=ActiveState', '--value');
  const serves = async (inside: Container): Promise<void> =>
    eventually('it listens', async () =>
      (await inside.run('ss', '--no-header', '--listening', '--tcp', '--numeric')).includes('127.0.0.1:8080'),
    );
  const addKey = 'kit-connector service key add office --all-kits --scope read';
  const keys = 'kit-connector service key list';

  describe('a machine of the cloud', () => {
    let inside: Container;
    beforeAll(async () => {
      inside = await startContainer(shared);
      await take(inside, 'first');
    });
    afterAll(async () => inside?.stop());

    test('gets the service alone, which waits for its configuration and says so', async () => {
      const said = await inside.sh(`${apt} install kit-connector-service 2>&1`);
      expect(said).toContain(`Next: write ${config}`);
      expect(await isActive(inside, many)).toBe('inactive');
      expect((await inside.attempt('systemctl', 'cat', gateway)).code).not.toBe(0);
      expect((await inside.attempt('id', 'kit-connector')).code).not.toBe(0);
    });

    test('serves once it is configured, as a user of its own', async () => {
      await inside.sh(`printf '${sample.replaceAll('\n', '\\n')}' >${config} && systemctl start ${many}`);
      await serves(inside);
      const pid = await inside.run('systemctl', 'show', many, '--property=MainPID', '--value');
      expect(await inside.run('stat', '--format=%U', `/proc/${pid}`)).toBe('kit-connector-service');
      await inside.sh(addKey);
      expect(await inside.run('stat', '--format=%U', '/var/lib/kit-connector-service/service.db')).toBe(
        'kit-connector-service',
      );
    });

    test('is upgraded by apt and keeps its keys', async () => {
      await take(inside, 'next');
      await inside.sh(`${apt} upgrade --with-new-pkgs`);
      expect(await inside.run('kit-connector', '--version')).toBe('0.2.2');
      await serves(inside);
      expect(await inside.sh(keys)).toContain('office');
    });

    test('may be a gateway too, and what is purged leaves the other as it is', async () => {
      await inside.sh(`${apt} install kit-connector`);
      expect([await isActive(inside, gateway), await isActive(inside, many)]).toEqual(['active', 'active']);
      await inside.sh(`${apt} purge kit-connector`);
      expect(await isActive(inside, many)).toBe('active');
      expect(await inside.sh(keys)).toContain('office');
      expect((await inside.attempt('id', 'kit-connector')).code).not.toBe(0);
      await inside.sh(`${apt} install kit-connector && ${apt} purge kit-connector-service`);
      expect(await isActive(inside, gateway)).toBe('active');
      const left =
        'find / -xdev -name "*kit-connector-service*" -not -path "/packages*" -not -path "/proc/*" -not -path "/sys/*"';
      expect(await inside.sh(left)).toBe('');
    });
  });

  describe('a machine of the cloud that has the single package', () => {
    let inside: Container;
    beforeAll(async () => {
      inside = await startContainer(shared);
      await inside.sh(`dpkg --install /packages/kit-connector_0.1.0_*.deb
        systemctl disable --now ${gateway}
        printf '${sample.replaceAll('\n', '\\n')}database: /var/lib/kit-connector/service.db\\n' >/etc/kit-connector/service.yaml
        chgrp kit-connector /etc/kit-connector/service.yaml && chmod 640 /etc/kit-connector/service.yaml
        umask 077; echo s3cret >/etc/credstore/kit-connector.mqtt-password
        systemctl enable --now ${many}`);
      await serves(inside);
      await inside.sh(
        `setpriv --reuid=kit-connector --regid=kit-connector --clear-groups ${addKey} --config /etc/kit-connector/service.yaml`,
      );
      await take(inside, 'first');
    });
    afterAll(async () => inside?.stop());

    test('goes on through an upgrade of that package alone, and is told what comes next', async () => {
      const said = await inside.sh(`${apt} upgrade --with-new-pkgs 2>&1`);
      expect(said).toContain('Next: apt install kit-connector-service');
      expect(await inside.run('kit-connector', '--version')).toBe('0.2.1');
      await serves(inside);
      expect(await inside.sh(`${keys} --config /etc/kit-connector/service.yaml`)).toContain('office');
    });

    test('is taken over with its configuration, database, credentials and start', async () => {
      const said = await inside.sh(`${apt} install kit-connector-service 2>&1`);
      expect(said).toContain('taken over from the single package');
      await serves(inside);
      expect(await inside.sh(keys)).toContain('office');
      expect(await inside.sh(`cat ${config}`)).toContain('/var/lib/kit-connector-service/service.db');
      expect(await inside.sh(`cat /run/credentials/${many}/mqtt-password`)).toBe('s3cret');
      expect(await isActive(inside, gateway)).toBe('inactive');
    });

    test('goes on when the gateway is purged, also after a restart', async () => {
      await inside.sh(`${apt} purge kit-connector`);
      expect(await inside.run('systemctl', 'is-enabled', many)).toBe('enabled');
      await inside.run('systemctl', 'restart', many);
      await serves(inside);
      expect(await inside.sh(keys)).toContain('office');
    });
  });

  describe('a gateway that has the single package', () => {
    let inside: Container;
    beforeAll(async () => {
      inside = await startContainer(shared);
      await inside.sh('dpkg --install /packages/kit-connector_0.1.0_*.deb');
      await take(inside, 'first');
    });
    afterAll(async () => inside?.stop());

    test('is upgraded by apt through two versions, which it shows everywhere, and keeps id, configuration and buffer', async () => {
      const report = async () =>
        status.parse(JSON.parse(await inside.run('kit-connector', 'status', '--json')));
      const id = async (): Promise<string> => inside.sh('cat /var/lib/kit-connector/kit-id');
      const before = await report();
      const kept = [await id(), await inside.sh('cat /etc/kit-connector/config.yaml')];
      for (const [repository, version] of [
        ['first', '0.2.1'],
        ['next', '0.2.2'],
      ] as const) {
        await take(inside, repository);
        await inside.sh(`${apt} upgrade --with-new-pkgs`);
        expect(await isActive(inside, gateway)).toBe('active');
        expect([await id(), await inside.sh('cat /etc/kit-connector/config.yaml')]).toEqual(kept);
        const said = await Promise.all([
          inside.run('kit-connector', '--version'),
          inside.run('dpkg-query', '--show', '--showformat=${Version}', 'kit-connector'),
          inside.sh(
            'rm -f /root/bundle.tar.gz; kit-connector support-bundle --output /root/bundle.tar.gz >&2; tar --extract --gzip --to-stdout --file /root/bundle.tar.gz --wildcards "*versions.json" | head -c 200',
          ),
        ]);
        expect(said).toEqual([version, version, expect.stringContaining(`"kit_connector": "${version}"`)]);
        const now = await report();
        expect(now.version).toBe(version);
        expect(now.outbox.buffered).toBeGreaterThanOrEqual(before.outbox.buffered);
      }
    });
  });
});
