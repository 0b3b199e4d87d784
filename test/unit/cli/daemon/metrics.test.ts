/** The port of the figures: taken by another program at the start, free later, and closed at the end. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { keepMetrics } from '../../../../src/cli/daemon/metrics.ts';
import { texts } from '../../../../src/cli/texts.ts';
import { texts as cloud_texts } from '../../../../src/cloud/texts.ts';
import { makeCertificates } from '../../../support/certificates.ts';
import { eventually } from '../../../support/eventually.ts';
import { freePort } from '../../../support/ports.ts';
import { recordingLog } from '../../../support/recording-log.ts';
import { makeDirectory, run } from '../../../support/temporary.ts';

const app = {
  openMetrics: async () => ({ content_type: 'text/plain', scrape: async () => 'figures\n' }),
  vitals: { check: async () => undefined, summary: () => 'well' },
};

test('figures over TLS are for those who have a certificate of the authority', async () => {
  const dir = await makeDirectory();
  const made = await makeCertificates(dir, 'prometheus');
  const [port, end] = [await freePort(), new AbortController()];
  const log = recordingLog();
  const tls = {
    cert_file: made.server.cert,
    key_file: made.server.key,
    client_ca_file: made.ca,
    client_certificates: 'required',
  } as const;
  const { closed } = await keepMetrics(app, {
    listen: { host: '127.0.0.1', port },
    tls,
    log,
    signal: end.signal,
  });
  const ask = async (...more: readonly string[]): Promise<string> =>
    run('curl', '-sS', '--cacert', made.ca, ...more, `https://localhost:${port}/metrics`);
  expect(await ask('--cert', made.client.cert, '--key', made.client.key)).toBe('figures\n');
  await expect(ask()).rejects.toThrow(/curl/u);
  expect(log.at('warn')).toEqual([cloud_texts.log_client_certificate]);
  end.abort();
  await closed;
});

test('a port in use is logged once, retried, and used when it is free', async () => {
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  const address = holder.address();
  if (typeof address !== 'object' || address === null) throw new Error('no port');
  const { port } = address;
  const log = recordingLog();
  const end = new AbortController();
  const listen = { host: '127.0.0.1', port };
  const faults: (string | undefined)[] = [];
  const onFault = (reason: string | undefined): void => void faults.push(reason);
  const { closed } = await keepMetrics(app, { listen, log, signal: end.signal, onFault }, 20);
  expect(faults.at(0)).toMatch(/in use/u);
  expect(log.at('error')).toEqual([texts.metrics_unavailable]);
  holder.close();
  await once(holder, 'close');
  await eventually('there are figures', async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/metrics`).catch(() => undefined);
    return (await answer?.text()) === 'figures\n';
  });
  expect(log.at('error')).toHaveLength(1);
  expect(log.at('info')).toEqual([texts.metrics_restored]);
  expect(faults.at(-1)).toBeUndefined();
  end.abort();
  await closed;
});

test('a daemon that ends does not wait for a port that never became free', async () => {
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  const address = holder.address();
  if (typeof address !== 'object' || address === null) throw new Error('no port');
  const end = new AbortController();
  const listen = { host: '127.0.0.1', port: address.port };
  const { closed } = await keepMetrics(app, { listen, log: recordingLog(), signal: end.signal });
  end.abort();
  expect(await closed).toBeUndefined();
  holder.close();
});
