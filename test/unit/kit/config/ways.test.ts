/** How the configuration names the way to a broker: WebSocket, proxies, ALPN. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { texts } from '../../../../src/kit/config/texts.ts';
import { testDirectory } from '../../../support/test-directory.ts';
import { faultsOf, kit_id, readText } from './lab.ts';

async function brokerOf(lines: string, files: Readonly<Record<string, string>> = {}) {
  const dir = await testDirectory();
  for (const [name, text] of Object.entries(files)) await writeFile(join(dir, name), text, { mode: 0o600 });
  const read = readText(dir, `kit_id: ${kit_id}\nbroker: { ${lines} }\n`);
  const faults = await faultsOf(dir, read);
  if (faults.length > 0) throw new Error(faults.join('\n'));
  return (await read).broker;
}

it.each([
  ['wss://b.example', 'wss://b.example:443/mqtt'],
  ['wss://b.example/', 'wss://b.example:443/mqtt'],
  ['ws://b.example:8083/ws', 'ws://b.example:8083/ws'],
  [
    'wss://b.example/mqtt?x-amz-customauthorizer-name=a',
    'wss://b.example:443/mqtt?x-amz-customauthorizer-name=a',
  ],
])('%s is %s', async (url, whole) => {
  expect((await brokerOf(`url: "${url}"`))?.url).toBe(whole);
});

it('a proxy has its login in the configuration and a file', async () => {
  const lines = 'url: mqtts://b, proxy: "socks5://p", proxy_username: kit, proxy_password_file: pw';
  const proxy = { kind: 'socks5', host: 'p', port: 1080, username: 'kit', password: 'secret' };
  expect((await brokerOf(lines, { pw: 'secret\n' }))?.proxy).toEqual(proxy);
  expect((await brokerOf('url: mqtts://b, proxy: none'))?.proxy).toBeNull();
  expect((await brokerOf('url: mqtts://b'))?.proxy).toBeUndefined();
});

it('port 443 of AWS is asked for MQTT as its documents say, unless the configuration asks for something else', async () => {
  const url = 'url: "mqtts://a1-ats.iot.eu-west-1.amazonaws.com:443"';
  expect((await brokerOf(url))?.alpn).toEqual(['mqtt']);
  expect((await brokerOf(`${url}, alpn: [x-amzn-mqtt-ca]`))?.alpn).toEqual(['x-amzn-mqtt-ca']);
  expect((await brokerOf('url: "mqtts://b.example:443"'))?.alpn).toBeUndefined();
});

it('headers of the request for a WebSocket stand in a file, which is checked', async () => {
  const lines = 'url: wss://b, websocket: { headers_file: h }';
  const { websocket } = (await brokerOf(lines, { h: 'Authorization: Bearer a.b\nX-Kit:7\n' })) ?? {};
  expect(websocket).toEqual({ subprotocol: 'mqtt', headers: { Authorization: 'Bearer a.b', 'X-Kit': '7' } });
  await expect(brokerOf(lines, { h: 'Bearer a.b\n' })).rejects.toThrow(
    texts.no_header('').split(', ')[1] ?? '',
  );
});
