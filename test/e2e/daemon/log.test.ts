/** The log of a whole day in short, as a technician reads it: a line for each change of state, and no secret anywhere. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startMosquitto } from '../../support/brokers/broker.ts';
import { startCloud } from '../../support/kit/cloud.ts';
import { eventually } from '../../support/eventually.ts';
import { withKit } from '../../support/kit/kit.ts';
import { peerMissing } from '../../support/peers.ts';

const password = 'correct-horse-battery-staple';

describe.skipIf(peerMissing('mosquitto', 'mosquitto_passwd'))('the log of a daemon', () => {
  it('has one line for each change of state, and the password is nowhere', async () => {
    await withKit({ rehearsed: false }, async (kit) => {
      const passwords = { [kit.kit_id]: password, cloud: 'of the cloud' };
      const broker = await startMosquitto({ passwords: { ...passwords, [kit.kit_id]: 'another' } });
      const shown: string[] = [];
      try {
        const password_file = join(kit.dir, 'password');
        await writeFile(password_file, `${password}\n`, { mode: 0o600 });
        await kit.configure({ broker: { url: broker.url, password_file }, drivers: [kit.gateway] });
        const cloud = await startCloud(broker.url, kit.kit_id, {
          username: 'cloud',
          password: 'of the cloud',
        });
        const daemon = await kit.start();
        await daemon.printed(/broker refused the connection/);
        shown.push((await kit.run('status')).stdout, (await kit.run('status', '--json')).stdout);
        await broker.setPasswords(passwords);
        await cloud.until('the birth', ({ data }) => data?.['online'] === true, 15_000);
        await kit.machine.setPresent(false);
        await daemon.printed(/device is unavailable/);
        await kit.machine.setPresent(true);
        await daemon.printed(/device is back/);
        await broker.kill();
        await daemon.printed(/broker connection lost/);
        await broker.start();
        await eventually('connected again', async () => (await kit.status()).uplink.state === 'connected');
        shown.push((await kit.run('status')).stdout);
        const { stdout, stderr } = await daemon.end('SIGTERM');

        expect(stderr).toBe('');
        expect(daemon.log()).toHaveLength(stdout.trim().split('\n').length);
        const story = daemon.log().map(({ level, msg }) => `${level} ${msg}`);
        // Whether the first attempt has failed by then is chance, and whether the gateway was looked at.
        const beginning = ['info kit-connector started', 'info gateway came online'];
        expect(story.slice(0, 3)).toEqual(expect.arrayContaining(beginning));
        expect(story.filter((line) => !beginning.includes(line))).toEqual([
          'warn broker refused the connection; buffering',
          'info connected to the broker',
          'warn device is unavailable',
          'info device is back',
          'warn broker connection lost; buffering',
          'info connected to the broker',
          'info kit-connector stopped',
        ]);
        const said = [
          ...shown,
          stdout,
          stderr,
          ...cloud.raw.flatMap(({ topic, payload }) => [topic, payload.toString('latin1')]),
        ];
        for (const text of said) expect(text).not.toContain(password);
        await cloud.leave();
      } finally {
        await broker.stop();
      }
    });
  });
});
