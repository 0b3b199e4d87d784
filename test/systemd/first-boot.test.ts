/** One image, flashed to two gateways that boot without any network: each starts at once and has an id of its own. */
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { buildGateway } from '../support/systemd/packages.ts';
import { targetNamed } from '../../systemd/package/target.ts';
import {
  type Container,
  containerMissing,
  limited,
  makeImage,
  startContainer,
} from '../support/systemd/container.ts';
import { eventually } from '../support/eventually.ts';
import { peerMissing } from '../support/peers.ts';
import { makeDirectory, run } from '../support/temporary.ts';
import { texts } from '../../src/cli/texts.ts';

const shared = join(import.meta.dirname, '../../dist/test');
const unit = 'kit-connector.service';
const wait_online = 'systemd-networkd-wait-online.service';
const state = '/var/lib/kit-connector';

const status = z.looseObject({ kit_id: z.uuid(), degraded: z.array(z.string()) });

async function property(inside: Container, name: string, of = unit): Promise<string> {
  return inside.run('systemctl', 'show', of, `--property=${name}`, '--value');
}

async function report(inside: Container) {
  return status.parse(JSON.parse(await inside.run('kit-connector', 'status', '--json')));
}

describe.skipIf(containerMissing() || peerMissing('x86_64-linux-gnu-strip'))('an image', () => {
  let image: string;

  beforeAll(async () => {
    const architecture = (await run('dpkg', '--print-architecture')).trim();
    const debs = await buildGateway({ target: targetNamed(architecture), out: shared, compression: 'none' });
    image = await makeImage(await makeDirectory(), debs);
    await run('systemctl', '--root', image, 'enable', 'systemd-networkd.service', wait_online);
    // Something on the gateway waits for a network, as much does.
    await run('systemctl', '--root', image, 'add-wants', 'multi-user.target', 'network-online.target');
  });
  afterAll(async () => rm(image, { recursive: true, force: true }));

  test('holds no id of a kit', async () => {
    expect(await readFile(join(image, 'etc/kit-connector/config.yaml'), 'utf8')).not.toMatch(/^kit_id:/m);
    const found = await run('sh', '-c', `find '${image}${state}' -name 'kit-id*' 2>/dev/null || true`);
    expect(found).toBe('');
  });

  test('can be set up while it is built, and holds no id then either', async () => {
    const setup = [
      'env',
      '-i',
      'PATH=/usr/bin:/bin',
      'kit-connector',
      'setup',
      '--no-ask',
      '--scan',
      '0',
      '--broker',
      'mqtts://b.example.com',
    ];
    const inside = ['--mount', '--pid', '--fork', `--root=${image}`, '--mount-proc'];
    await run('cp', join(image, 'etc/kit-connector/config.yaml'), join(image, 'root/config.yaml'));
    const [command = '', ...rights] = limited;
    const said = await run(command, ...rights, 'unshare', ...inside, ...setup);
    expect(said).toContain(texts.login_needs_id);
    const text = await readFile(join(image, 'etc/kit-connector/config.yaml'), 'utf8');
    expect(text).toContain('mqtts://b.example.com');
    expect(text).not.toMatch(/^kit_id:/m);
    await run('mv', join(image, 'root/config.yaml'), join(image, 'etc/kit-connector/config.yaml'));
  });

  test('runs at once on two machines without a network, each with another id', async () => {
    const ids: string[] = [];
    for (const name of ['one', 'two']) {
      const inside = await startContainer(shared, { image, isEarly: true });
      try {
        await eventually(
          `machine ${name} is served`,
          async () => (await property(inside, 'ActiveState')) === 'active',
        );
        expect(await property(inside, 'ActiveState', wait_online)).toBe('activating');
        const [job_us, ready_us] = [
          Number(await property(inside, 'InactiveExitTimestampMonotonic')),
          Number(await property(inside, 'ActiveEnterTimestampMonotonic')),
        ];
        console.info(
          `machine ${name} was ready ${Math.round((ready_us - job_us) / 1_000)} ms after its start job`,
        );
        ids.push((await report(inside)).kit_id);
      } finally {
        await inside.stop();
      }
    }
    expect(new Set(ids).size).toBe(2);
  });

  test('whose state was copied to another machine is named in the log, the status and the doctor', async () => {
    const inside = await startContainer(shared, { image, isEarly: true });
    try {
      await eventually('it is served', async () => (await property(inside, 'ActiveState')) === 'active');
      const { kit_id, degraded } = await report(inside);
      expect(degraded.join('\n')).not.toContain('another machine');
      await inside.sh(`systemctl stop ${unit}; systemd-id128 new >/etc/machine-id; systemctl start ${unit}`);
      const copied = await report(inside);
      expect(copied.kit_id).toBe(kit_id);
      expect(copied.degraded.join('\n')).toContain('was written on another machine');
      const { output } = await inside.attempt('kit-connector', 'doctor');
      expect(output).toMatch(
        /^warn {2}configuration: .*was written on another machine.*; if this is a copy, remove/mu,
      );
      expect(await inside.sh(`cat /etc/kit-connector/config.yaml`)).not.toMatch(/^kit_id:/mu);
      await inside.sh(`rm ${state}/kit-id ${state}/kit-id.machine; systemctl restart ${unit}`);
      const renewed = await report(inside);
      expect(renewed.kit_id).not.toBe(kit_id);
      expect(renewed.degraded.join('\n')).not.toContain('another machine');
      // The journal lies in a folder by machine id, which was changed under it.
      const log = await inside.run('journalctl', '--merge', '--unit', unit, '--output=cat');
      expect(log).toContain('was written on another machine');
    } finally {
      await inside.stop();
    }
  });
});
