/** The probe of npm onvif finds cameras for `setup`. Why the driver itself does without it is in decision 0002. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { discoverByLibrary } from '../../../../../drivers/onvif/suggest.ts';

it('finds what answers its probe, at the address that answered', async () => {
  const camera = createSocket({ type: 'udp4', reuseAddr: true });
  camera.bind(3_702);
  await once(camera, 'listening');
  camera.addMembership('239.255.255.250', '127.0.0.1');
  camera.on('message', (probe, { port, address }) => {
    const id = /MessageID[^>]*>([^<]*)</u.exec(String(probe))?.[1] ?? '';
    const answer =
      `<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope" xmlns:a="http://schemas.xmlsoap.org/ws/2004/08/addressing" xmlns:d="http://schemas.xmlsoap.org/ws/2005/04/discovery"><s:Header><a:RelatesTo>${id}</a:RelatesTo></s:Header><s:Body><d:ProbeMatches><d:ProbeMatch>` +
      '<a:EndpointReference><a:Address>urn:uuid:7</a:Address></a:EndpointReference><d:Scopes>onvif://www.onvif.org/name/Gate</d:Scopes><d:XAddrs>http://10.9.9.9/onvif/device_service</d:XAddrs>' +
      '</d:ProbeMatch></d:ProbeMatches></s:Body></s:Envelope>';
    camera.send('no XML', port, address);
    camera.send(answer, port, address);
  });
  const found = await discoverByLibrary('lo').finally(() => camera.close());
  expect(found).toMatchObject([{ host: '127.0.0.1', port: 80, name: 'Gate', endpoint: 'urn:uuid:7' }]);
});
