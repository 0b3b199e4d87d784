/**
 * Devices that are online and do not deliver everything: what status, doctor and the cloud are given of them. Sources:
 * onvif/specs #592 and roleoroleo/onvif_simple_server #50 (number of pull points), home-assistant/core #37711 (one at a time),
 * #36145 and #42784 (stream without events, nothing logged), #91089 (pull refused with "unauthorized", webhook works),
 * ZoneMinder #4191 and #4385 (feed works, events do not: unusable address), koush/scrypted #177 (neither pictures nor events),
 * #1722 (action not implemented), roleoroleo/yi-hack-Allwinner-v2 #563 (service addresses without a host).
 */
import { afterEach, describe, expect, it } from 'vitest';
import { texts as onvif_texts } from '../../../drivers/onvif/texts.ts';
import { texts as vendorcam_texts } from '../../../drivers/vendorcam/texts.ts';
import { texts as vendorradio_texts } from '../../../drivers/vendorradio/texts.ts';
import { full_acls } from '../../../drivers/vendorradio/sim/sim-radio.ts';
import { degradedReasons } from '../../../src/kit/app/degraded.ts';
import { eventually } from '../../support/eventually.ts';
import { labOfEachTest } from '../../support/cameras/onvif-lab.ts';
import { vendorcamLab } from '../../support/cameras/vendorcam-lab.ts';
import { vendorradioLab } from '../../support/drivers/vendorradio-lab.ts';
import type { hubLab } from '../../support/kit/hub-lab.ts';
import { well } from '../../support/kit/troubles.ts';

type Lab = ReturnType<typeof hubLab>;
type Shown = NonNullable<ReturnType<Lab['hub']['assets']>[number]>['health'];
const healthOf = ({ hub }: Pick<Lab, 'hub'>): Shown => hub.assets()[0]?.health ?? {};
const until = async (lab: Pick<Lab, 'hub'>, item: keyof Shown, state: string): Promise<Shown> => {
  await eventually(`${item} ${state}`, () => healthOf(lab)[item]?.state === state);
  return healthOf(lab);
};
const degradedBy = ({ hub }: Pick<Lab, 'hub'>) => degradedReasons({ ...well, assets: hub.assets() });

const service = (name: string, address: string): string =>
  `<tds:Service><tds:Namespace>http://www.onvif.org/${name}/wsdl</tds:Namespace><tds:XAddr>${address}</tds:XAddr></tds:Service>`;

describe('an ONVIF camera that is online', () => {
  const lab = labOfEachTest();

  it('delivers everything, and the kit is well', async () => {
    const running = await lab.startServed();
    const health = await until(running, 'events', 'works');
    expect(health).toMatchObject({ still: { state: 'works' }, commands: { state: 'works' } });
    expect(degradedBy(running)).toEqual([]);
  });

  it('and refuses every subscription makes the kit degraded, in its own words, with the next try', async () => {
    const camera = await lab.start();
    const words = 'Maximum number of pull points reached';
    camera.misbehave('CreatePullPointSubscription', { fault: 'ter:MaxPullPoints', reason: words });
    camera.misbehave('Subscribe', { fault: 'ter:ActionNotSupported', reason: words });
    const running = await lab.serve(camera);
    const { events } = await until(running, 'events', 'fails');
    expect(events?.reason).toContain(words);
    expect(Date.parse(events?.next_try_at ?? '')).toBeGreaterThan(Date.now());
    expect(degradedBy(running)).toEqual([
      expect.stringMatching(/^no events of camera \d+: .*Maximum number/u),
    ]);
  });

  // home-assistant/core #91089: CreatePullPointSubscription is answered with 401 to a user who may do all else.
  it('and lets this user not subscribe names the right that is missing, and no other cure', async () => {
    const camera = await lab.start();
    for (const operation of ['CreatePullPointSubscription', 'Subscribe']) {
      camera.misbehave(operation, { fault: 'ter:NotAuthorized', reason: 'Sender not authorized' });
    }
    const { events } = await until(await lab.serve(camera), 'events', 'fails');
    expect(events?.reason).toMatch(/Sender not authorized/u);
    expect(events?.reason?.split('; ').at(-1)).toBe(onvif_texts.rights_remedy);
    expect(events?.reason).not.toContain(onvif_texts.events_remedy);
  });

  it('and has nothing but itself is well: what it does not offer is no fault', async () => {
    const running = await lab.startServed({ services: [], ptz: false });
    const health = await until(running, 'events', 'not_offered');
    const { state, ...others } = health;
    expect(state).toMatchObject({ state: 'works' });
    expect(Object.values(others).map((each) => each.state)).toEqual(Array(4).fill('not_offered'));
    expect(health.events?.reason).toBe(onvif_texts.no_event_service);
    expect(degradedBy(running)).toEqual([]);
  });

  it('and whose events are switched off in the configuration is well', async () => {
    const camera = await lab.start();
    const running = lab.run({ cameras: [await lab.entry(camera, { events: 'off' })] });
    const { events } = await until(running, 'events', 'not_offered');
    expect(events?.reason).toBe(onvif_texts.events_off);
  });

  it('and reports addresses of services that cannot be used has neither stream, pictures, commands nor events', async () => {
    const camera = await lab.start();
    const at = 'ftp://192.0.2.7/onvif';
    const services = ['ver10/media', 'ver20/ptz', 'ver10/events'].map((name) => service(name, at));
    camera.misbehave('GetServices', {
      body: `<tds:GetServicesResponse>${services.join('')}</tds:GetServicesResponse>`,
    });
    camera.misbehave('GetCapabilities', { fault: 'ter:ActionNotSupported' });
    const running = await lab.serve(camera);
    const health = await until(running, 'events', 'fails');
    for (const item of ['events', 'stream', 'still', 'commands'] as const) {
      expect(health[item]).toMatchObject({ state: 'fails' });
      expect(health[item]?.reason).toContain(at);
    }
  });

  it('and refuses its profiles names the right that is missing', async () => {
    const camera = await lab.start();
    for (const operation of ['GetProfiles', 'GetStreamUri']) {
      camera.misbehave(operation, { fault: 'ter:NotAuthorized', reason: 'Operator only' });
    }
    const running = await lab.serve(camera);
    const { stream, still, commands } = healthOf(running);
    for (const each of [stream, still, commands]) {
      expect(each).toMatchObject({ state: 'fails' });
      expect(each?.reason).toMatch(new RegExp(`Operator only.*; ${onvif_texts.rights_remedy}$`, 'u'));
    }
  });

  it('and has no pictures says so in its words', async () => {
    const running = await lab.startServed({ snapshot: undefined });
    const { still, commands } = healthOf(running);
    expect(still).toMatchObject({ state: 'not_offered' });
    expect(still?.reason).toContain('ActionNotSupported');
    expect(commands).toMatchObject({ state: 'works' });
  });

  it('delivers events by webhook where it cannot be pulled', async () => {
    const camera = await lab.start();
    camera.misbehave('CreatePullPointSubscription', { fault: 'ter:ActionNotSupported' });
    const running = lab.run({
      cameras: [await lab.entry(camera)],
      webhook: { listen: '127.0.0.1', port: 0 },
    });
    await until(running, 'events', 'works');
    expect(running.outbox.drafts.some((draft) => JSON.stringify(draft.data).includes('"fails"'))).toBe(false);
  });
});

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

describe('a Reolink camera that is online', () => {
  it('delivers events, and has a stream only while RTSP is switched on', async () => {
    const lab = await vendorcamLab();
    ends.push(lab.stop);
    lab.camera.rtspEnable = 0;
    lab.start();
    await lab.online();
    const health = await until(lab.hub, 'events', 'works');
    expect(health.stream).toMatchObject({ state: 'not_offered', reason: vendorcam_texts.rtsp_off });
    expect(health).toMatchObject({ still: { state: 'works' }, commands: { state: 'works' } });
  });
});

describe('a radio that is online', () => {
  it('and may not report its peers makes the kit degraded, with the remedy', async () => {
    const lab = await vendorradioLab();
    ends.push(lab.stop);
    const { iwinfo: _, ...ubus } = full_acls.ubus;
    lab.radio.sessions.acls = { ...full_acls, ubus: { ...ubus, iwinfo: ['info', 'devices'] } };
    lab.start();
    await lab.until('online');
    const { state } = await until(lab.hub, 'state', 'fails');
    expect(state?.reason).toContain(vendorradio_texts.without_peers);
    expect(state?.reason).toContain(vendorradio_texts.gap_remedy);
    expect(degradedBy(lab.hub)).toHaveLength(1);
  });

  it('and reports all of it is well', async () => {
    const lab = await vendorradioLab();
    ends.push(lab.stop);
    lab.start();
    await lab.until('online');
    expect(await until(lab.hub, 'state', 'works')).toMatchObject({ commands: { state: 'works' } });
    expect(degradedBy(lab.hub)).toEqual([]);
  });
});
