/** Pictures of vendor cameras: one GET in the session, whose answer is a JPEG or an error. */
import { afterEach, describe, expect, it } from 'vitest';
import { samplePicture } from '../../../../src/toolkit/device/pictures/sample-picture.ts';
import type { JsonObject } from '../../../../src/contract/json.ts';
import { channels } from '../../../../src/contract/topics.ts';
import { texts as device_texts } from '../../../../src/toolkit/device/texts.ts';
import { eventually } from '../../../support/eventually.ts';
import { vendorcamLab, type VendorcamLab } from '../../../support/cameras/vendorcam-lab.ts';

let lab: VendorcamLab | undefined;
afterEach(async () => {
  await lab?.stop();
  lab = undefined;
});
const online = async (...about: Parameters<typeof vendorcamLab>): Promise<VendorcamLab> => {
  lab = await vendorcamLab(...about);
  lab.start();
  await lab.online();
  return lab;
};

it('sends a picture with an alarm, scaled by firmware that ignores which stream was asked for', async () => {
  lab = await vendorcamLab();
  // reolink_aio#64, reolink_cctv#176: RLC-510A and RLC-520 answer with the picture of the main stream.
  const large = Buffer.concat([samplePicture(), Buffer.alloc(30_000), samplePicture()]);
  lab.camera.file = { type: 'image/jpeg', bytes: large };
  lab.start(lab.options({ alarm_picture: true }));
  const { asset, camera, hub } = lab;
  await lab.online();
  const pictures = () =>
    hub.outbox.on(channels.feed(asset('Gate')?.id ?? '', 'alarm_picture')) as readonly JsonObject[];
  camera.camera.motion = true;
  await eventually('it is sent', () => pictures().length === 1);
  expect(pictures()[0]).toMatchObject({ alarms: [{ feed: 'motion' }], reason: null });
  expect(camera.count('Snap')).toBe(1);
});

describe('snapshot of a vendor camera', () => {
  it('is taken in the session of the driver, also over TLS', async () => {
    const it = await online({ secure: true });
    const logins = it.camera.sessions.logins;
    expect(await it.command('snapshot')).toMatchObject({ bytes: samplePicture().length });
    expect(it.camera.sessions.logins).toBe(logins);
    const id = it.asset('Gate')?.id ?? '';
    expect((await it.hub.hub.picture(id, 60_000)).jpeg.equals(samplePicture())).toBe(true);
  });

  it('is taken of the channel of a recorder that was asked for', async () => {
    const it = await online({ channels: 2 });
    await it.command('snapshot', {}, { asset: 'Cam 2' });
    expect(it.camera.asked.filter(({ cmd }) => cmd === 'Snap')).toMatchObject([{ param: { channel: 1 } }]);
    await expect(it.command('snapshot', {}, { asset: 'NVR' })).rejects.toThrow(/no command/u);
  });

  it('logs in again, once, when the session was lost', async () => {
    const it = await online();
    it.camera.errors.set('Snap', { code: -6, times: 1 });
    expect(await it.command('snapshot')).toMatchObject({ bytes: samplePicture().length });
    expect(it.camera.count('Snap')).toBe(2);
  });

  it('fails with the answer of the device, and the camera stays online', async () => {
    const it = await online();
    it.camera.errors.set('Snap', { code: -12, times: 9 });
    await expect(it.command('snapshot')).rejects.toThrow(/could not read/u);
    expect(it.asset('Gate')?.status).toBe('online');
  });

  it('is asked for once more when the device was not ready', async () => {
    const it = await online();
    it.camera.errors.set('Snap', { code: -17, detail: 'rcv failed', times: 1 });
    expect(await it.command('snapshot')).toMatchObject({ bytes: samplePicture().length });
    expect(it.camera.count('Snap')).toBe(2);
  });

  // home-assistant/core#148557, #150128, #132361, #144082, #127117: D800, B800, B1200 and others behind a recorder.
  it('fails after two answers that the camera gives its recorder no picture, with these words', async () => {
    const it = await online();
    it.camera.errors.set('Snap', { code: -17, detail: 'rcv failed', times: 9 });
    await expect(it.command('snapshot')).rejects.toThrow(/-17: rcv failed.*firmware/u);
    expect(it.camera.count('Snap')).toBe(2);
    expect(it.asset('Gate')?.status).toBe('online');
  });

  it('refuses what is no picture', async () => {
    const it = await online();
    it.camera.file = { type: 'text/html', bytes: Buffer.from('<html>') };
    await expect(it.command('snapshot')).rejects.toThrow(device_texts.picture_not_jpeg('text/html'));
  });

  it('is not offered where the firmware has none, nor where the options leave it out', async () => {
    lab = await vendorcamLab();
    lab.camera.camera.hasPictures = false;
    lab.start();
    await lab.online();
    await expect(lab.command('snapshot')).rejects.toThrow(/no command/u);
    lab.camera.camera.hasPictures = true;
    await lab.restart(lab.options({ commands: ['ptz_move'] }));
    await lab.online();
    await expect(lab.command('snapshot')).rejects.toThrow(/no command/u);
  });
});
