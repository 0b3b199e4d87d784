/** Replies that are compressed, in pieces, long, or missing for a while. */
import { describe, expect, it } from 'vitest';
import { texts } from '../../../../drivers/onvif/texts.ts';
import type { Misbehaviour } from '../../../fakes/fake-onvif-camera.ts';
import { eventually } from '../../../support/eventually.ts';
import { isStatus, sceneOfEachTest } from '../../../support/cameras/onvif-lab.ts';

const scene = sceneOfEachTest();

const canMove = ({ data }: { readonly data: object | null }): boolean =>
  data !== null && 'commands' in data && JSON.stringify(data.commands).includes('ptz_move');

const information =
  '<GetDeviceInformationResponse><Manufacturer>Acme</Manufacturer><Model>Packed</Model><FirmwareVersion>1</FirmwareVersion><SerialNumber>777001</SerialNumber></GetDeviceInformationResponse>';

describe('a reply', () => {
  it.each<[string, Misbehaviour]>([
    ['compressed with gzip', { packed: 'gzip', body: information }],
    ['compressed with deflate', { packed: 'deflate', body: information }],
  ])('is read although it is %s, which was not asked for', async (_, reply) => {
    scene.camera.misbehave('GetDeviceInformation', reply);
    const { outbox } = await scene.lab.serve(scene.camera);
    expect(JSON.stringify(outbox.drafts)).toContain('777001');
  });

  it.each<[string, Misbehaviour, string]>([
    ['in an encoding that was not asked for', { packed: 'br', body: information }, texts.reply_encoded('br')],
    [
      'that is a few bytes and becomes megabytes',
      { packed: 'gzip', body: ' '.repeat(4_000_000) },
      texts.reply_large(1_048_576),
    ],
    [
      'that is damaged',
      { head: ['Content-Encoding: gzip', 'Connection: close'], body: information },
      texts.reply_not_unpacked,
    ],
  ])('%s is named, with the camera offline', async (_, reply, reason) => {
    scene.camera.misbehave('GetDeviceInformation', reply);
    const { log } = scene.lab.run({ cameras: [await scene.lab.entry(scene.camera)] });
    await eventually('the line', () => JSON.stringify(log.lines).includes(reason));
  });
});

describe('the profiles of a recorder', () => {
  /** As long as those of real devices. */
  const profile = (n: number): string => {
    const filler = Array.from(
      { length: 70 },
      (__, at) => `<tt:Option${at}>some value ${at}</tt:Option${at}>`,
    );
    const size = `<tt:Resolution><tt:Width>${n % 2 === 0 ? 2560 : 640}</tt:Width><tt:Height>${n % 2 === 0 ? 1440 : 360}</tt:Height></tt:Resolution>`;
    return `<trt:Profiles token="P${n}"><tt:VideoEncoderConfiguration token="V${n}"><tt:Encoding>H264</tt:Encoding>${size}${filler.join('')}</tt:VideoEncoderConfiguration><tt:PTZConfiguration token="Z"/></trt:Profiles>`;
  };
  const profiles = Array.from({ length: 100 }, (__, n) => profile(n)).join('');

  it('are read when there are a hundred of them, with movements and stream', async () => {
    scene.camera.misbehave('GetProfiles', {
      body: `<trt:GetProfilesResponse>${profiles}</trt:GetProfilesResponse>`,
    });
    const { outbox } = scene.lab.run({ cameras: [await scene.lab.entry(scene.camera)] });
    await outbox.until(canMove);
    expect(scene.camera.requests.find(({ operation }) => operation === 'GetStreamUri')?.body).toContain(
      '>P1<',
    );
  });
});

describe('a camera that is up before its media service', () => {
  it.each<[string, Misbehaviour, string]>([
    ['GetProfiles', 'abort', texts.profiles_refused],
    ['GetProfiles', { fault: 'ter:Busy' }, texts.profiles_refused],
    ['GetStreamUri', { fault: 'ter:Busy' }, texts.stream_refused],
  ])('is served without what %s would give, reports it, and has it later', async (name, how, line) => {
    scene.camera.misbehave(name, how);
    const { outbox, log } = scene.lab.run(
      { cameras: [await scene.lab.entry(scene.camera)] },
      { limits: { unread_again_ms: 20 } },
    );
    await outbox.until(isStatus('online'));
    expect(log.lines.find(({ sentence }) => sentence === line)?.facts).toMatchObject({
      camera: `camera ${scene.camera.port}`,
    });
    // Where the profiles are missing, so are the movements.
    expect(outbox.drafts.some(canMove)).toBe(name === 'GetStreamUri');
    scene.camera.misbehave(name, 'normal');
    await eventually(
      'it was read again',
      () => scene.camera.count('GetSnapshotUri') > (name === 'GetStreamUri' ? 1 : 0),
    );
    await outbox.until(canMove);
  });
});
