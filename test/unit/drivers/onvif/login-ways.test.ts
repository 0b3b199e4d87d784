/** Logins of cameras in the field: clocks that lie, SOAP 1.1, Basic, lock-outs; never more refused logins than two for a try. */
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { texts } from '../../../../drivers/onvif/texts.ts';
import { texts as device_texts } from '../../../../src/toolkit/device/texts.ts';
import type { FakeCamera, FakeCameraSettings, Misbehaviour } from '../../../fakes/fake-onvif-camera.ts';
import { makeCertificates } from '../../../support/certificates.ts';
import { context, isStatus, labOfEachTest, said } from '../../../support/cameras/onvif-lab.ts';
import { elapse } from '../../../support/elapse.ts';
import { eventually } from '../../../support/eventually.ts';
import { withDirectory } from '../../../support/temporary.ts';

const lab = labOfEachTest();
const hour_ms = 3_600_000;

/** Requests that carried a login. */
const logins = (camera: FakeCamera): number =>
  camera.requests.filter(
    ({ body, authorization }) => body.includes('UsernameToken') || authorization !== undefined,
  ).length;

/** The camera with another password than the configured one; resolves once it is given up, with the reason. */
async function refused(settings: Partial<FakeCameraSettings>, more: object = {}, tls?: object) {
  const camera = await lab.start(settings);
  const entry = await lab.entry(camera, more);
  camera.settings.password = 'another';
  const { hub } = lab.run({ cameras: [{ ...entry, ...tls }] });
  const device = () => hub.drivers()[0]?.devices?.[0];
  await eventually('it is rejected', () => device()?.state === 'rejected');
  return { camera, reason: device()?.reason ?? '' };
}

describe('a camera that reports another time than its own as UTC', () => {
  // OpenIPC/majestic-webui#292: local time; home-assistant/core#68216, agsh/onvif#249: summer time.
  it.each([10 * hour_ms, hour_ms, -5 * hour_ms])(
    'is logged in to with the clock of the gateway when it is %d ms ahead, and in no other way from then on',
    async (reported_ahead_ms) => {
      const { camera, outbox, hub } = await lab.startServed({ auth: 'ws_security', reported_ahead_ms });
      await camera.next('PullMessages');
      camera.events.set('tns1:VideoSource/MotionAlarm', 'State', 'true');
      await outbox.until(said('motion', ({ detected }) => detected === true));
      await camera.lose();
      await outbox.until(isStatus('offline'));
      camera.forget();
      await camera.restore();
      await eventually('it is back', () => hub.assets()[0]?.status === 'online');
      expect(camera.count('GetSystemDateAndTime')).toBe(0);
    },
  );

  it('is logged in to at the first try after its summer time has begun or ended', async () => {
    const { camera, outbox, hub } = await lab.startServed({ auth: 'ws_security' });
    for (const reported_ahead_ms of [hour_ms, 0]) {
      await camera.next('PullMessages');
      camera.settings.reported_ahead_ms = reported_ahead_ms;
      outbox.clear();
      await camera.lose();
      await outbox.until(isStatus('offline'));
      await camera.restore();
      await eventually('it is back', () => hub.assets()[0]?.status === 'online');
      expect(hub.drivers()[0]?.devices).toMatchObject([{ state: 'online' }]);
    }
    expect(camera.count('GetDeviceInformation')).toBeLessThanOrEqual(8);
  });
});

describe('a refused login', () => {
  it.each<[string, Partial<FakeCameraSettings>]>([
    ['with WS-Security and digest', { auth: 'either' }],
    ['with a clock that lies', { auth: 'ws_security', reported_ahead_ms: hour_ms }],
    ['with digest and a clock that lies', { auth: 'either', reported_ahead_ms: hour_ms }],
    ['with digest alone', { auth: 'digest' }],
    ['with a challenge for each token', { auth: 'digest', challenges_tokens: true }],
    ['with SOAP 1.1', { auth: 'ws_security', soap_12: { raw: '', status: 415 }, reported_ahead_ms: hour_ms }],
  ])('costs two attempts of a camera %s', async (_, settings) => {
    const { camera } = await refused(settings);
    expect(logins(camera)).toBe(2);
    await elapse(10 * 60_000);
    expect(logins(camera)).toBe(2);
  });

  it('costs three attempts where the password is changed while the camera is served', async () => {
    const { camera, hub } = await lab.startServed({ auth: 'ws_security' });
    await camera.next('PullMessages');
    camera.forget();
    camera.settings.password = 'changed';
    camera.events.set('tns1:VideoSource/MotionAlarm', 'State', 'true');
    await eventually('it is rejected', () => hub.drivers()[0]?.devices?.[0]?.state === 'rejected');
    // The pull that was under way had its answer.
    expect(logins(camera)).toBeLessThanOrEqual(3);
  });

  it('may have its cause in the clock, which is named', async () => {
    const { reason } = await refused({ auth: 'ws_security', reported_ahead_ms: 10 * hour_ms });
    expect(reason).toContain(texts.clock_off('kit', ' (Sender not authorized)', 10 * hour_ms));
    expect(reason).toContain('10 h ahead of');
  });

  // https://github.com/agsh/onvif/issues/112 and home-assistant/core#147404 have the first, a Dahua the second (agsh/onvif#501).
  it.each<[string, Misbehaviour, RegExp]>([
    [
      'counts',
      { fault: 'ter:NotAuthorized', reason: 'Invalid username or password! You still have 1 attempt(s).' },
      /still have 1 attempt/u,
    ],
    [
      'is locked',
      {
        fault: 'ter:Action',
        reason:
          'The device is locked because of entering wrong username/password many times. Please try it after 5 minutes!',
      },
      /^camera locked the account of "kit".*after 5 minutes/u,
    ],
    [
      'is locked by ISAPI',
      {
        raw: '<userCheck version="2.0" xmlns="http://www.isapi.org/ver20/XMLSchema"><statusValue>401</statusValue><lockStatus>lock</lockStatus><unlockTime>1800</unlockTime><retryLoginTime>0</retryLoginTime></userCheck>',
        status: 401,
      },
      /^camera locked the account of "kit".*unlocktime 1800/u,
    ],
  ])('is not repeated in another way where the camera %s', async (_, how, words) => {
    const camera = await lab.start();
    camera.misbehave('GetDeviceInformation', how);
    const { hub } = lab.run({ cameras: [await lab.entry(camera)] });
    const device = () => hub.drivers()[0]?.devices?.[0];
    await eventually('it is rejected', () => device()?.state === 'rejected');
    expect(device()?.reason).toMatch(words);
    expect(logins(camera)).toBe(1);
  });

  it('for the time of its stamp is one, whatever code it has', async () => {
    // A Dahua (agsh/onvif#249, koush/scrypted#1142).
    const camera = await lab.start();
    camera.misbehave('GetDeviceInformation', {
      fault: 'ter:OperationProhibited',
      reason: 'Wsse authorized time check failed.',
    });
    const { hub } = lab.run({ cameras: [await lab.entry(camera)] });
    await eventually('it is rejected', () => hub.drivers()[0]?.devices?.[0]?.state === 'rejected');
    expect(hub.drivers()[0]?.devices?.[0]?.reason).toContain('Wsse authorized time check failed.');
  });
});

describe('a camera that understands SOAP 1.1 alone', () => {
  const namespace = 'http://schemas.xmlsoap.org/soap/envelope/';
  const mismatch = `<e:Envelope xmlns:e="${namespace}"><e:Body><e:Fault><faultcode>e:VersionMismatch</faultcode><faultstring>Invalid SOAP message or SOAP version mismatch</faultstring></e:Fault></e:Body></e:Envelope>`;
  it.each<[string, Misbehaviour]>([
    ['nothing (OpenIPC/viewer#65)', { raw: '' }],
    ['the status 415', { raw: '', status: 415 }],
    ['the status 400', { raw: '', status: 400 }],
    [
      'a fault of SOAP 1.1 that names no cause',
      {
        raw: mismatch
          .replace('VersionMismatch', 'Client')
          .replace('Invalid SOAP message or SOAP version mismatch', 'no'),
        status: 500,
      },
    ],
    ['the status 500 and a page', { raw: '<html>error</html>', status: 500 }],
    [
      'a fault of SOAP 1.1 (ZoneMinder/zoneminder#1346, quatanium/python-onvif#3)',
      { raw: mismatch, status: 500 },
    ],
  ])('and answers to 1.2 with %s is served with a login and without', async (_, soap_12) => {
    for (const auth of ['ws_security', 'none'] as const) {
      const { camera, outbox } = await lab.startServed({ auth, soap_12, serial: `11${auth}` });
      await eventually('it is pulled', () => camera.count('PullMessages') > 0);
      camera.events.set('tns1:VideoSource/MotionAlarm', 'State', 'true');
      await outbox.until(said('motion', ({ detected }) => detected === true));
      const others = camera.requests.filter(({ body }) => !body.includes(namespace));
      expect(others).toHaveLength(1);
    }
  });
});

describe('a camera that does not know WS-Security', () => {
  const fault = {
    fault: 's:MustUnderstand',
    reason: "The data in element 'Security' must be understood but cannot be handled",
  } as const;
  it.each(['digest', 'none'] as const)('and takes the login %s is served', async (auth) => {
    const camera = await lab.start({ auth: 'digest' });
    const entry = await lab.entry(camera);
    camera.settings.auth = auth;
    camera.misbehave('GetDeviceInformation', () =>
      camera.requests.at(-1)?.body.includes('UsernameToken') === true ? fault : 'normal',
    );
    const { outbox } = lab.run({ cameras: [entry] });
    await outbox.until(isStatus('online'));
    expect(logins(camera)).toBeGreaterThan(0);
  });
});

describe('a camera that offers HTTP Basic alone', () => {
  it('gets no password without TLS, which is said with the remedy', async () => {
    // jimm98y/SharpOnvif#16
    const { camera, reason } = await refused({ auth: 'basic' }, {});
    expect(reason).toContain(texts.basic_alone);
    expect(camera.requests.some(({ authorization }) => authorization !== undefined)).toBe(false);
  });

  it('is served with TLS, pictures too, and asked once with a wrong password', async () => {
    // onvif/specs#812
    await withDirectory(async (dir) => {
      const { server } = await makeCertificates(dir, 'kit');
      const [cert, key] = await Promise.all([readFile(server.cert, 'utf8'), readFile(server.key, 'utf8')]);
      const { fingerprint256: fingerprint } = new X509Certificate(cert);
      const camera = await lab.start({ auth: 'basic' }, { cert, key });
      const entry = await lab.entry(camera, { tls: { fingerprint } });
      const { outbox, hub } = lab.run({ cameras: [entry] });
      await outbox.until(isStatus('online'));
      const found = hub.findCommand(hub.assets()[0]?.id ?? '', 'snapshot');
      if (!('command' in found)) throw new Error(found.refusal);
      expect(await found.command.read({}).run(context())).toHaveProperty('bytes');
      camera.forget();
      camera.settings.password = 'changed';
      await camera.reboot();
      await eventually('it is rejected', () => hub.drivers()[0]?.devices?.[0]?.state === 'rejected');
      expect(logins(camera)).toBeLessThanOrEqual(2);
    });
  });
});

describe('a camera that sends the head of the request back', () => {
  it('before its reply is served', async () => {
    // Tapo C320WS and C225 (home-assistant/core#85902, JurajNyiri/HomeAssistant-Tapo-Control#294).
    const camera = await lab.start();
    for (const name of ['GetDeviceInformation', 'CreatePullPointSubscription', 'PullMessages'])
      camera.misbehave(name, { echo: 'before' });
    const { outbox } = await lab.serve(camera);
    await eventually('it is pulled', () => camera.count('PullMessages') > 0);
    camera.events.set('tns1:VideoSource/MotionAlarm', 'State', 'true');
    await outbox.until(said('motion', ({ detected }) => detected === true));
  });

  it('in place of a reply is named as what it is', async () => {
    // Tapo C120 1.1.7 (koush/scrypted#1246).
    const camera = await lab.start({ auth: 'none' });
    camera.misbehave('GetDeviceInformation', { echo: 'instead' });
    const { hub } = lab.run({ cameras: [await lab.entry(camera)] });
    await eventually('it is offline', () => hub.drivers()[0]?.devices?.[0]?.state === 'offline');
    expect(hub.drivers()[0]?.devices?.[0]?.reason).toBe(texts.request_echoed);
    expect(texts.request_echoed).not.toContain(device_texts.not_http);
  });
});
