/** The section `ingest.amqp` of the service: files that it names, and passwords that would be sent without encryption. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isThisMachine } from '../../../../src/platform/networks.ts';
import { ingestSection, readAmqp } from '../../../../src/kit/config/standalone.ts';
import { texts } from '../../../../src/kit/config/texts.ts';
import { testDirectory } from '../../../support/test-directory.ts';

interface Fault {
  readonly at: string;
  readonly what: string;
}

/** Reads the section with a password file of this text; null: there is no such file. */
async function read(amqp: object, password: string | null = 'secret\n') {
  const dir = await testDirectory();
  if (password !== null) await writeFile(join(dir, 'password'), password, { mode: 0o600 });
  const found: Fault[] = [];
  const warnings: string[] = [];
  const faults = {
    add: (at: readonly string[], what: string) => void found.push({ at: at.join('.'), what }),
  };
  const section = ingestSection.parse({ amqp: { password_file: 'password', ...amqp } });
  const config = await readAmqp(section, { file: '', dir, faults: faults as never, warnings });
  return { config, faults: found, warnings };
}

describe('The queue of the service', () => {
  it('has its defaults, and a password without the end of its line', async () => {
    const { config, faults, warnings } = await read({ urls: ['amqps://rabbit.example.com:5671'] });
    expect({ faults, warnings }).toEqual({ faults: [], warnings: [] });
    expect(config).toMatchObject({ username: 'cloud', password: 'secret', vhost: '/', queue: 'kit-service' });
    expect(config?.ca).toBeUndefined();
  });

  it.each([
    ['amqp://rabbit.example.com:5672', 1],
    ['amqp://127.0.0.1.example.com:5672', 1],
    ['amqp://127.0.0.1:5672', 0],
    ['amqp://localhost:5672', 0],
    ['amqp://[::1]:5672', 0],
    ['amqps://rabbit.example.com:5671', 0],
  ])('warns of a password in clear to %s: %i', async (url, count) => {
    const { warnings } = await read({ urls: ['amqps://rabbit.example.com:5671', url] });
    expect(warnings).toEqual(count === 0 ? [] : [texts.password_in_clear(url, texts.write_amqps)]);
  });

  it('names each file that cannot be used', async () => {
    const { faults } = await read({ urls: ['amqps://a.example.com'], ca_file: 'no-such.pem' }, null);
    expect(faults.map(({ at }) => at)).toEqual(['ingest.amqp.password_file', 'ingest.amqp.ca_file']);
  });

  it('refuses an authority that no node would be checked against', async () => {
    const { faults } = await read({ urls: ['amqp://127.0.0.1:5672'], ca_file: 'password' });
    expect(faults).toContainEqual({ at: 'ingest.amqp.ca_file', what: texts.amqp_no_effect_without_tls });
  });

  it.each([
    'amqp://user@rabbit.example.com',
    'amqp://rabbit.example.com/vhost',
    'amqp://rabbit.example.com?heartbeat=5',
    'mqtt://rabbit.example.com',
    'amqp:///vhost',
  ])('refuses the address %s', (url) => {
    expect(ingestSection.safeParse({ amqp: { password_file: 'password', urls: [url] } }).success).toBe(false);
  });
});

describe('A server on this machine', () => {
  it.each(['localhost', '[::1]', '127.0.0.1', '127.9.8.7'])('is %s', (hostname) => {
    expect(isThisMachine(hostname)).toBe(true);
  });

  it.each(['127.0.0.1.example.com', '127.example.com', 'localhost.example.com', '128.0.0.1', '[::2]', ''])(
    'is not %j',
    (hostname) => {
      expect(isThisMachine(hostname)).toBe(false);
    },
  );
});
