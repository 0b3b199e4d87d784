/** Cameras that answer a probe, and others that should not. */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import fc from 'fast-check';
import { afterEach, expect, it } from 'vitest';
import { discover, readMatches } from '../../../../drivers/onvif/discovery.ts';
import { eventually } from '../../../support/eventually.ts';
import { forAll } from '../../../support/for-all.ts';

const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.close();
});

const match = (id: string, xaddrs: string, endpoint = 'urn:uuid:1', scopes = '') =>
  `<s:Envelope><s:Header><a:RelatesTo>${id}</a:RelatesTo></s:Header><s:Body><d:ProbeMatches><d:ProbeMatch><a:EndpointReference><a:Address>${endpoint}</a:Address></a:EndpointReference>` +
  `<d:Scopes>${scopes}</d:Scopes><d:XAddrs>${xaddrs}</d:XAddrs></d:ProbeMatch></d:ProbeMatches></s:Body></s:Envelope>`;

async function responder(answer: (id: string, probe: string) => readonly string[]) {
  const socket = createSocket('udp4').bind(0, '127.0.0.1');
  sockets.push(socket);
  await once(socket, 'listening');
  socket.on('message', (probe, { port, address }) => {
    const id = /MessageID>([^<]*)</u.exec(String(probe))?.[1] ?? '';
    for (const each of answer(id, String(probe))) socket.send(each, port, address);
  });
  return { host: '127.0.0.1', port: socket.address().port };
}

it('suggests each camera once, at the address from which it answered, with its name', async () => {
  const scopes =
    'onvif://www.onvif.org/name/Gate%20West onvif://www.onvif.org/hardware/AC-7 onvif://www.onvif.org/MAC/00:1b:c5:00:00:07';
  const target = await responder((id) => [
    match(id, 'http://10.9.9.9/onvif http://127.0.0.1:8000/onvif/device_service', 'urn:uuid:1', scopes),
    match(id, 'https://10.9.9.8/onvif', 'urn:uuid:2'),
    match(id, 'x:@10.9.9.6:19999/stolen http://10.9.9.6#/x', 'urn:uuid:4'),
    match('urn:uuid:somebody-else', 'http://10.9.9.7/onvif', 'urn:uuid:3'),
  ]);
  const found = await discover({ signal: new AbortController().signal, window_ms: 400, target });
  expect(found).toEqual([
    {
      host: '127.0.0.1',
      port: 8000,
      path: '/onvif/device_service',
      secure: false,
      name: 'Gate West',
      model: 'AC-7',
      mac: '00:1b:c5:00:00:07',
      endpoint: 'urn:uuid:1',
    },
    expect.objectContaining({
      // What it reports could be any host: the one that answered is a camera, if any is.
      host: '127.0.0.1',
      port: 443,
      secure: true,
      name: null,
      endpoint: 'urn:uuid:2',
    }),
  ]);
});

it.each([
  // roleoroleo/yi-hack-MStar#537
  ['without a host', 'http:///onvif/device_service'],
  ['as a path', '/onvif/device_service'],
  // Link-local addresses come first (evercam/evercam-discovery-java#22).
  ['with the zone of its interface', 'http://[fe80::1%eth0]/onvif/device_service'],
])('finds a device that reports its address %s, at the one from which it answered', async (_, xaddrs) => {
  const target = await responder((id) => [match(id, xaddrs)]);
  const found = await discover({ signal: new AbortController().signal, window_ms: 200, target });
  expect(found).toMatchObject([
    { host: '127.0.0.1', port: 80, path: '/onvif/device_service', secure: false },
  ]);
});

it('finds a device that answers for the newer type alone, without scopes', async () => {
  const answer = (id: string) =>
    match(id, 'http://127.0.0.1:2020/onvif/device_service').replace('<d:Scopes></d:Scopes>', '<d:Scopes/>');
  const target = await responder((id, probe) => (/Types>tds:Device</u.test(probe) ? [answer(id)] : []));
  const found = await discover({ signal: new AbortController().signal, window_ms: 200, target });
  expect(found).toMatchObject([{ port: 2020, name: null, model: null, mac: null }]);
});

it('ends at once with its signal, and leaves no socket', async () => {
  const open = (): number => process.getActiveResourcesInfo().filter((name) => name.startsWith('UDP')).length;
  const before = open();
  const target = { host: '127.0.0.1', port: 9 };
  expect(await discover({ signal: AbortSignal.abort(), window_ms: 60_000, target })).toEqual([]);
  await eventually('its sockets are closed', () => open() <= before);
});

it('reads whatever comes without a throw', { tags: 'long' }, () => {
  forAll(fc.string({ unit: 'binary', maxLength: 300 }), fc.string({ maxLength: 60 }), (text, xaddrs) => {
    readMatches(`id ${text}<d:ProbeMatch >${text}`, 'id', '1.2.3.4');
    readMatches(match('id', xaddrs, text, `onvif://www.onvif.org/name/${xaddrs}`), 'id', '1.2.3.4');
  });
});
