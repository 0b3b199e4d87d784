/** Several brokers in the configuration: what they share, and what each has of its own. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { renewed } from '../../../../src/kit/config/broker.ts';
import { texts } from '../../../../src/kit/config/texts.ts';
import { testDirectory } from '../../../support/test-directory.ts';
import { faultsOf, kit_id, readText } from './lab.ts';

const shared = `
broker:
  username: fleet
  password_file: pw
  proxy: http://proxy:3128
  proxy_username: fleet
  proxy_password_file: pw
`;

describe('broker.urls', () => {
  it('share what they do not have of their own', async () => {
    const dir = await testDirectory();
    await writeFile(join(dir, 'pw'), 'shared\n', { mode: 0o600 });
    await writeFile(join(dir, 'pw2'), 'own\n', { mode: 0o600 });
    const { broker } = await readText(
      dir,
      `kit_id: ${kit_id}${shared}  redirect_to: [fleet.example]
  urls:
    - mqtts://a.example
    - { url: wss://b.example, username: other, password_file: pw2, proxy: none, tls_name: x.example }
    - { url: mqtts://c.example, username: '${kit_id}' }
`,
    );
    const proxy = { kind: 'http', host: 'proxy', port: 3128, username: 'fleet', password: 'shared' };
    expect(broker).toMatchObject({
      url: 'mqtts://a.example:8883',
      username: 'fleet',
      password: 'shared',
      proxy,
      redirect_to: ['fleet.example'],
      others: [
        {
          url: 'wss://b.example:443/mqtt',
          username: 'other',
          password: 'own',
          proxy: null,
          tls_name: 'x.example',
        },
        // Another user has another password.
        { url: 'mqtts://c.example:8883', username: kit_id, password: undefined, proxy },
      ],
    });
    await writeFile(join(dir, 'pw2'), 'new\n');
    const [second] = broker?.others ?? [];
    expect(second && (await renewed(second)).password).toBe('new');
  });

  it.each([
    ['  urls: [mqtts://a]\n  url: mqtts://b', `broker.url: ${texts.url_and_urls}`],
    ['  urls: [mqtts://a, "b:1"]', `broker.urls[1].url: ${texts.no_address('b:1')}`],
    ['  urls: [mqtts://a, { url: mqtt://b, ca_file: ca }]', `broker.urls[1].ca_file: `],
    ['  urls: []', 'broker.urls: '],
  ])('%j is refused by name', async (lines, fault) => {
    const dir = await testDirectory();
    const faults = await faultsOf(dir, readText(dir, `kit_id: ${kit_id}\nbroker:\n${lines}\n`));
    expect(faults.join('\n')).toContain(fault);
  });
});
