/** Brokers of clouds: what `doctor` says of a connection to one, and what `setup` asks for. */
import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { checkProfile } from '../../../../src/cli/doctor/broker-profile.ts';
import { texts } from '../../../../src/cli/texts.ts';
import { brokerOptions } from '../../../support/brokers/broker-options.ts';
import { makeCertificates } from '../../../support/certificates.ts';
import { peerMissing } from '../../../support/peers.ts';
import { makeDirectory } from '../../../support/temporary.ts';
import { typed } from '../setup-typed.ts';

const aws = 'a1-ats.iot.eu-central-1.amazonaws.com';
const emqx = 'a1.ala.eu-central-1.emqxsl.com';
const certificate = { cert: 'PEM', key: 'PEM' } as const;

describe('the profile of a broker', () => {
  it.each([
    ['mqtts://broker.example.com:8883', {}, ['none', /^$/u]],
    [`mqtts://${aws}:8883`, certificate, ['ok', /AWS IoT Core.*100 messages a second/u]],
    [`mqtts://${aws}:443`, certificate, ['ok', /AWS IoT Core/u]],
    [`mqtts://${aws}:8883`, {}, ['warn', /client certificate/u]],
    [`mqtts://${aws}:8883`, { password: 'x' }, ['ok', /AWS/u]],
    [`mqtt://${aws}:1883`, certificate, ['fail', /TLS only/u]],
    [`mqtts://${aws}:1883`, certificate, ['fail', /port 1883/u]],
    ['mqtts://k.westeurope-1.ts.eventgrid.azure.net:443', certificate, ['fail', /port 443/u]],
    ['wss://k.westeurope-1.ts.eventgrid.azure.net:443/mqtt', certificate, ['ok', /Azure Event Grid/u]],
    ['wss://a1.s1.eu.hivemq.cloud:8884/mqtt', { password: 'x' }, ['ok', /HiveMQ Cloud/u]],
    ['mqtts://a1.s1.eu.hivemq.cloud:8883', {}, ['warn', /no password/u]],
    [`mqtts://${emqx}:8883`, { password: 'x' }, ['ok', /EMQX Serverless.*10 messages a second/u]],
  ] as const)('at %s with %j', (url, login, [level, words]) => {
    const [found] = checkProfile({ ...brokerOptions(url, login), ack: 'auto' });
    expect(found?.level ?? 'none').toBe(level);
    expect(found?.finding ?? '').toMatch(words);
  });
});

describe.skipIf(peerMissing('openssl'))('setup at a broker of a cloud', () => {
  it('asks for what the cloud expects, and for no password beside a certificate', async () => {
    const dir = await makeDirectory();
    const { client } = await makeCertificates(dir, 'kit');
    const asked: string[] = [];
    const answers = new Map([
      [texts.ask_broker, `mqtts://${aws}:8883`],
      [texts.ask_certificate('AWS IoT Core'), client.cert],
      [texts.ask_key, client.key],
    ]);
    const { code, file } = await typed(dir, [], async (question) => {
      const words = question.replace(/(?: \[.*\])?: $/u, '');
      asked.push(words);
      return answers.get(words) ?? '';
    });
    expect(code).toBe(0);
    expect(asked.slice(-4)).toEqual([
      texts.ask_broker,
      texts.ask_username_of('AWS IoT Core'),
      texts.ask_certificate('AWS IoT Core'),
      texts.ask_key,
    ]);
    const text = await readFile(file, 'utf8');
    expect(text).toContain(`  username: ""\n  cert_file: ${client.cert}\n  key_file: ${client.key}\n`);
  });

  it('says which user name the cloud means', async () => {
    const dir = await makeDirectory();
    const asked: string[] = [];
    await typed(dir, ['--broker', `mqtts://${emqx}:8883`], async (question) => {
      asked.push(question);
      return '';
    });
    expect(asked.join('\n')).toContain('EMQX Serverless (that of the authentication entry)');
  });
});
