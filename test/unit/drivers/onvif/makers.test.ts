/** What cameras of well-known makers do differently, as far as their documents and public reports show it: they are served all the same. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { type Misbehaviour } from '../../../fakes/fake-onvif-camera.ts';
import { labOfEachTest } from '../../../support/cameras/onvif-lab.ts';
import { eventually } from '../../../support/eventually.ts';
import type { RecordingOutbox } from '../../../support/recording-outbox.ts';
import { texts } from '../../../../drivers/onvif/texts.ts';
import { texts as device_texts } from '../../../../src/toolkit/device/texts.ts';

const lab = labOfEachTest();

const commandsOf = ({ drafts }: RecordingOutbox): string =>
  JSON.stringify(drafts.findLast(({ data }) => data && 'commands' in data)?.data?.['commands']);

describe('a challenge of HTTP digest', () => {
  const md5 = 'realm="IP Camera(12345)", qop="auth", nonce="4e44:63", stale="FALSE"';
  it.each([
    ['beside Basic in one header', `Basic realm="IP Camera(12345)", Digest ${md5}`],
    ['for two algorithms in one header', `Digest ${md5}, algorithm=MD5, Digest ${md5}, algorithm=SHA-256`],
    [
      'for two algorithms in two headers',
      [`Digest algorithm=SHA-256, ${md5}`, `Digest algorithm="MD5", ${md5}`],
    ],
    [
      'with an unknown algorithm first',
      [`Digest algorithm=Whirlpool, ${md5}`, `Digest algorithm=MD5, ${md5}`],
    ],
    ['with a comma in its realm', 'Digest realm="Login to 3K, front", nonce="1", qop=auth, opaque="a,b"'],
    ['without a quality', 'DIGEST realm="Login to 3K0123PAZ00001",nonce="1",opaque="x"'],
    ['with a key for each session', `Digest algorithm=MD5-sess, ${md5}`],
    ['with a key for each session and no quality', 'Digest realm="a", nonce="1", algorithm=MD5-sess'],
    ['with a key for each session by SHA-256', `Digest algorithm=SHA-256-sess, ${md5}`],
    ['by SHA-512/256', `Digest algorithm=SHA-512-256, ${md5}`],
    ['over the whole message', 'Digest realm="a", nonce="1", qop="auth-int", algorithm=MD5'],
  ])('is met %s', async (_, digest_challenge) => {
    const { camera } = await lab.startServed({ auth: 'digest', digest_challenge });
    expect(camera.count('GetDeviceInformation')).toBeLessThanOrEqual(3);
  });
});

describe('a clock', () => {
  const local = (ms: number, zone: string): Misbehaviour => {
    const at = new Date(ms);
    const time = `<Time><Hour>${at.getUTCHours()}</Hour><Minute>${at.getUTCMinutes()}</Minute><Second>${at.getUTCSeconds()}</Second></Time>`;
    const date = `<Date><Year>${at.getUTCFullYear()}</Year><Month>${at.getUTCMonth() + 1}</Month><Day>${at.getUTCDate()}</Day></Date>`;
    return {
      body: `<GetSystemDateAndTimeResponse><SystemDateAndTime><TimeZone><TZ>${zone}</TZ></TimeZone><LocalDateTime>${time}${date}</LocalDateTime></SystemDateAndTime></GetSystemDateAndTimeResponse>`,
    };
  };
  const skew_ms = -7 * 86_400_000;
  it.each([
    ['CST-8', 8],
    ['CST-08:00:00', 8],
    ['EST5EDT,M3.2.0,M11.1.0', -5],
    ['&lt;+0530&gt;-5:30', 5.5],
    ['UTC', 0],
  ])('is read from its local time in the zone %s', async (zone, hours) => {
    const camera = await lab.start({ auth: 'ws_security', skew_ms });
    camera.misbehave('GetSystemDateAndTime', () => local(Date.now() + skew_ms + hours * 3_600_000, zone));
    await lab.serve(camera);
    expect(camera.count('CreatePullPointSubscription')).toBeLessThanOrEqual(1);
  });

  it('is read from the head of the answer where the time needs a login', async () => {
    const camera = await lab.start({ auth: 'ws_security', skew_ms });
    camera.misbehave('GetSystemDateAndTime', () => ({
      fault: 'ter:NotAuthorized',
      date: new Date(Date.now() + skew_ms),
    }));
    await lab.serve(camera);
    expect(camera.count('CreatePullPointSubscription')).toBeLessThanOrEqual(1);
  });
});

describe('a reply', () => {
  const about = (before: string, after: string, model = 'X'): Misbehaviour => ({
    raw: `${before}<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"><s:Body><GetDeviceInformationResponse><Manufacturer>H264DVR</Manufacturer><Model>${model}</Model><FirmwareVersion>1</FirmwareVersion><SerialNumber>c3a1</SerialNumber></GetDeviceInformationResponse></s:Body></s:Envelope>${after}`,
  });
  it.each([
    ['after a byte order mark', about('\uFEFF<?xml version="1.0" encoding="utf-8"?>', '')],
    ['after empty lines', about('\r\n\r\n<?xml version="1.0"?>', '\r\n')],
    ['before a NUL', about('', '\0\0')],
    ['with characters that XML has not', about('', '', 'a\u0001b\0')],
  ])('is read %s', async (_, how) => {
    const camera = await lab.start();
    camera.misbehave('GetDeviceInformation', how);
    await lab.serve(camera);
    expect(camera.count('CreatePullPointSubscription')).toBeLessThanOrEqual(1);
  });

  it.each([
    ['a sign that no header may have', ['Server: gSOAP/2.7\u0001', 'Connection: close']],
    ['two lengths', ['Content-Length: 5', 'Transfer-Encoding: identity', 'Connection: close']],
  ])('is read behind a head with %s', async (_, head) => {
    const camera = await lab.start();
    const body =
      '<GetDeviceInformationResponse><Manufacturer>H264DVR</Manufacturer><SerialNumber>c3a1</SerialNumber></GetDeviceInformationResponse>';
    camera.misbehave('GetDeviceInformation', { head, body });
    await lab.serve(camera);
    expect(camera.count('CreatePullPointSubscription')).toBeLessThanOrEqual(1);
  });
});

describe('presets', () => {
  it('without names, without tokens and with a token twice leave the others', async () => {
    const camera = await lab.start();
    const body = ['1', '', '1', '2', 'x'.repeat(70)].map((token) => `<Preset token="${token}"/>`).join('');
    camera.misbehave('GetPresets', { body: `<GetPresetsResponse>${body}</GetPresetsResponse>` });
    const { outbox } = await lab.serve(camera);
    const choices = () => [...commandsOf(outbox).matchAll(/"const":"([^"]*)"/gu)].map(([, token]) => token);
    await eventually('the presets are choices', () => choices().length > 0);
    expect(choices()).toEqual(['1', '2']);
  });
});

describe('an account', () => {
  it.each([
    ['ter:OperationProhibited', 'The account has been locked'],
    ['ter:Action', 'User is locked, try again after 30 minutes'],
  ])('that is locked (%s) is left alone like a refused one', async (fault, reason) => {
    const camera = await lab.start();
    for (const operation of ['GetDeviceInformation']) camera.misbehave(operation, { fault, reason });
    const { hub } = lab.run({ cameras: [await lab.entry(camera)] });
    await eventually('it is rejected', () => hub.drivers()[0]?.devices?.[0]?.state === 'rejected');
    expect(hub.drivers()[0]?.devices?.[0]?.reason).toContain(reason);
    expect(camera.count('GetDeviceInformation')).toBeLessThanOrEqual(2);
  });

  it('that may not read the profiles is named, since picture and movements are missing', async () => {
    const camera = await lab.start();
    camera.misbehave('GetProfiles', { fault: 'ter:NotAuthorized', reason: 'Operator rights needed' });
    const { log } = await lab.serve(camera);
    expect(log.at('warn')).toContain(texts.profiles_refused);
  });
});

describe('profiles', () => {
  it('have tokens with any characters', async () => {
    const camera = await lab.start();
    const token = 'Profile&amp;&lt;1&gt; &quot;é';
    const profile = `<Profiles token="${token}"><VideoEncoderConfiguration><Encoding>H264</Encoding></VideoEncoderConfiguration><PTZConfiguration token="P"/></Profiles>`;
    camera.misbehave('GetProfiles', { body: `<GetProfilesResponse>${profile}</GetProfilesResponse>` });
    const asked = camera.next('GetPresets');
    await lab.serve(camera);
    expect((await asked).body).toContain('Profile&#38;&#60;1&#62; &#34;é<');
  });
});

describe('what is no ONVIF camera', () => {
  const answering = async (answer: string | undefined) => {
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      if (answer === '') socket.destroy();
      else if (answer !== undefined) socket.end(answer);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const at = server.address();
    const port = typeof at === 'object' && at !== null ? at.port : 0;
    return { port, close: () => server.close() };
  };
  const page = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nweb!';
  it.each([
    ['another program', 'SSH-2.0-OpenSSH_9.2\r\n', device_texts.not_http],
    ['a web page', page, texts.check_port],
    ['a web server without the service', page.replace('200 OK', '404 Not Found'), texts.check_port],
    ['a port that closes', '', `${device_texts.connection_closed}; ${texts.check_tls}`],
  ])('is named as %s, with the remedy', async (_, answer, sentence) => {
    const server = await answering(answer);
    const entry = { ...(await lab.entry(await lab.start())), port: server.port };
    const { hub } = lab.run({ cameras: [entry] });
    const device = () => hub.drivers()[0]?.devices?.[0];
    await eventually('it is offline', () => device()?.state === 'offline');
    expect(device()?.reason).toContain(sentence);
    expect(device()?.next_try_at).not.toBeNull();
    server.close();
  });

  it('is named where TLS or the host is wrong', async () => {
    const camera = await lab.start();
    const entry = await lab.entry(camera);
    const cameras = [
      { ...entry, tls: {} },
      { ...entry, name: 'no name', host: 'no-such-host.invalid' },
    ];
    const { hub } = lab.run({ cameras });
    const reasons = () => hub.drivers()[0]?.devices?.map(({ reason }) => reason);
    await eventually('both are offline', () => reasons()?.every((reason) => reason !== null) ?? false);
    expect(reasons()?.[0]).toBe(device_texts.not_tls);
    expect([device_texts.host_unknown, device_texts.host_unresolved]).toContain(reasons()?.[1]);
  });
});
