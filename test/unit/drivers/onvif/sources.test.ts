/** Recorders, encoders and cameras with several lenses: an asset for each video source, of which nothing is mixed. */
import { describe, expect, it } from 'vitest';
import { divide, planSources } from '../../../../drivers/onvif/camera/sources.ts';
import { profilesOf } from '../../../../drivers/onvif/camera/media.ts';
import { readEnvelope } from '../../../../drivers/onvif/soap/envelope.ts';
import { texts } from '../../../../drivers/onvif/texts.ts';
import type { FakeCamera, FakeCameraSettings } from '../../../fakes/fake-onvif-camera.ts';
import { eventually } from '../../../support/eventually.ts';
import { context, labOfEachTest, said } from '../../../support/cameras/onvif-lab.ts';

const lab = labOfEachTest();
const device_key = 'onvif:acme:007:12345678901234567890';
/** A recorder of which the second channel moves (blakeblackshear/frigate#8052, agsh/onvif#279). */
const two = [
  { token: 'vs1', ptz: false },
  { token: 'vs2', ptz: true },
];

async function start(settings: Partial<FakeCameraSettings>): Promise<FakeCamera> {
  return lab.start({ snapshot: '/snap.jpg', ...settings });
}

async function open(
  camera: FakeCamera,
  entry: object = {},
  more: Parameters<typeof lab.run>[1] = {},
  move_s = 0.2,
) {
  const streams = new Map<string, string | null>();
  const running = lab.run(
    { cameras: [await lab.entry(camera, { name: 'Yard', ...entry })], ptz: { move_s } },
    {
      ...more,
      streams: {
        want: (key, url) => void streams.set(key, url),
        urlOf: () => null,
        healthOf: () => undefined,
      },
    },
  );
  const assets = () =>
    running.hub
      .assets()
      .map(({ key, name, status }) => `${name} ${status} ${key.replace(device_key, 'DEVICE')}`);
  const offered = (name: string): readonly string[] => {
    const id = running.hub.assets().find((asset) => asset.name === name)?.id ?? '';
    const about = running.outbox.drafts.findLast(({ channel }) => channel.endsWith(`${id}/commands`))?.data;
    const list = about?.['commands'];
    return Array.isArray(list) ? list.map((each) => String((each as { name: unknown }).name)) : [];
  };
  const command = (asset: string, name: string) => {
    const id = running.hub.assets().find((each) => each.name === asset)?.id ?? '';
    const found = running.hub.findCommand(id, name);
    if (!('command' in found)) throw new Error(found.refusal);
    return found.command;
  };
  const motion = (name: string): readonly unknown[] => {
    const id = running.hub.assets().find((asset) => asset.name === name)?.id ?? '';
    return running.outbox.drafts
      .filter(({ channel }) => channel.includes(id) && channel.endsWith('/motion'))
      .map(({ data }) => data?.['detected']);
  };
  return { ...running, streams, assets, offered, command, motion };
}

const online = (count: number, { hub }: Pick<Awaited<ReturnType<typeof open>>, 'hub'>) =>
  eventually(
    `${count} are online`,
    () => hub.assets().filter(({ status }) => status === 'online').length === count,
  );

describe('A device with two video sources', () => {
  it('is an asset for each, with its own stream, picture and motor', async () => {
    const camera = await start({ sources: two });
    const running = await open(camera);
    await online(2, running);
    expect(running.assets()).toEqual(['Yard online DEVICE', 'Yard 2 online DEVICE:source:vs2']);
    expect([...running.streams].map(([, url]) => url?.replace(/^.*\//u, ''))).toEqual(['vs1-sub', 'vs2-sub']);
    const pictures = camera.requests.filter(({ operation }) => operation === 'GetSnapshotUri');
    expect(pictures.map(({ body }) => /ProfileToken>([^<]*)</u.exec(body)?.[1])).toEqual([
      'vs1-sub',
      'vs2-sub',
    ]);
    expect(() => running.command('Yard', 'ptz_move')).toThrow(/no command/u);
    await running.command('Yard 2', 'ptz_move').read({ direction: 'left' }).run(context());
    expect([camera.motorOf('vs1').moved, camera.motorOf('vs2').moved]).toEqual([0, 1]);
    const child = running.outbox.drafts.find(({ data }) => data?.['name'] === 'Yard 2')?.data;
    expect(child?.['parent_id']).toBe(running.hub.assets().find(({ name }) => name === 'Yard')?.id);
  });

  it('has each event at the asset of its source, and what names none at the device', async () => {
    const camera = await start({ sources: two });
    const running = await open(camera);
    await online(2, running);
    await camera.next('PullMessages');
    camera.events.set('tns1:VideoSource/MotionAlarm', 'State', 'true', 'vs2');
    await eventually('it is published', () => running.motion('Yard 2').includes(true));
    expect(running.motion('Yard')).toEqual([]);
    camera.events.set('tns1:VideoSource/MotionAlarm', 'State', 'true', '');
    await eventually('it is published', () => running.motion('Yard').includes(true));
    camera.events.set('tns1:VideoSource/MotionAlarm', 'State', 'false', 'vs2');
    await eventually('it ends', () => running.motion('Yard 2').includes(false));
    expect(running.motion('Yard')).toEqual([true]);
  });

  it('has the sources that the options choose, by the names there, and drops events of the others', async () => {
    const camera = await start({ sources: two });
    const running = await open(camera, { sources: [{ token: 'vs2', name: 'Gate' }] });
    await online(1, running);
    expect(running.assets()).toEqual(['Gate online DEVICE']);
    expect([...running.streams].map(([, url]) => url?.replace(/^.*\//u, ''))).toEqual(['vs2-sub']);
    expect(running.offered('Gate')).toContain('ptz_move');
    await camera.next('PullMessages');
    camera.events.set('tns1:VideoSource/MotionAlarm', 'State', 'true', 'vs1');
    camera.events.set('tns1:VideoSource/MotionAlarm', 'State', 'true', 'vs2');
    await eventually('it is published', () => running.motion('Gate').includes(true));
    camera.events.set('tns1:VideoSource/MotionAlarm', 'State', 'false', 'vs2');
    await eventually('it ends', () => running.motion('Gate').includes(false));
    expect(running.motion('Gate')).toEqual([true, false]);
  });

  it('has the others removed when a reload chooses some', async () => {
    const camera = await start({ sources: [...two, { token: 'vs3', ptz: false }] });
    const running = await open(camera);
    await online(3, running);
    const entry = await lab.entry(camera, { name: 'Yard', sources: [{ token: 'vs2' }] });
    running.hub.changeOptions('cameras', { pull_s: 5, ptz: { move_s: 0.2 }, cameras: [entry] });
    await eventually('one is left', () => running.assets().join() === 'Yard online DEVICE');
    expect(running.streams.get(device_key)).toMatch(/vs2-sub$/u);
  });

  it('has the others of an earlier run removed when the options choose some', async () => {
    const camera = await start({ sources: two });
    const first = await open(camera);
    await online(2, first);
    await first.stop();
    const announced = first.outbox.drafts
      .filter(({ channel }) => /^asset\/[^/]+$/u.test(channel))
      .map(({ channel, data }) => ({ channel, body: JSON.stringify(data) }));
    const second = await open(camera, { sources: [{ token: 'vs2' }] }, { announced });
    await eventually('one is left', () => second.assets().join() === 'Yard online DEVICE');
    expect(second.log.at('error')).toEqual([]);
  });

  it('is offline with the sources that there are when the options name another', async () => {
    const camera = await start({ sources: two });
    const { log } = await open(camera, { sources: [{ token: 'vs2' }, { token: 'vs9' }] });
    await eventually('it is said', () => log.at('warn').length > 0);
    expect(log.lines.find(({ level }) => level === 'warn')?.facts['reason']).toBe(
      texts.unknown_source('"vs9"', '"vs1", "vs2"'),
    );
  });

  it('keeps the key of a source over a restart while the first one is away, and is whole again with it', async () => {
    const camera = await start({ sources: two });
    const first = await open(camera);
    await online(2, first);
    await first.stop();
    camera.settings.sources = [{ token: 'vs2', ptz: true }];
    const second = await open(camera, {}, { limits: { presets_again_ms: 100 } });
    await online(2, second);
    expect(second.assets()).toEqual(['Yard online DEVICE', 'Yard 2 online DEVICE:source:vs2']);
    expect(second.streams.get(device_key)).toBe(null);
    expect(second.offered('Yard 2')).toContain('ptz_move');
  });

  it('has a channel that is plugged in later, and one that is unplugged is offline', async () => {
    const camera = await start({ sources: two });
    const running = await open(camera, {}, { limits: { presets_again_ms: 100 } });
    await online(2, running);
    camera.settings.sources = [...two, { token: 'vs3', ptz: false }];
    await online(3, running);
    camera.settings.sources = two;
    await eventually('it is offline', () =>
      running.hub.assets().some(({ name, reason }) => name === 'Yard 3' && reason === texts.source_gone),
    );
  });

  it('is divided by Device IO where it has Media2 alone', async () => {
    const camera = await start({ sources: two, services: ['media2', 'ptz', 'events', 'deviceio'] });
    const running = await open(camera);
    await online(2, running);
    expect(running.assets()).toHaveLength(2);
  });
});

describe('Two lenses on one motor', () => {
  // An optical and a thermal one, whose profiles have the same PTZ node, as of a DS-2TD8166 (onvif/specs#128).
  const lenses = [
    { token: 'optical', ptz: true },
    { token: 'thermal', ptz: true },
  ];

  /** One that is cancelled sends velocity 0 as well, since it does not wait for what the camera reports. */
  const stop = ['Stop', 'ContinuousMove'];

  it.each([
    ['a stop', { direction: 'stop' }, ['ContinuousMove', ...stop, 'Stop']],
    ['a movement', { direction: 'up' }, ['ContinuousMove', ...stop, 'ContinuousMove', 'Stop']],
  ])('are stopped by %s at the other one, before it begins', async (_, payload, expected) => {
    const camera = await start({ sources: lenses });
    const running = await open(camera, {}, {}, 5);
    await online(2, running);
    const first = running.command('Yard', 'ptz_move').read({ direction: 'left' }).run(context());
    const refused = first.catch(String);
    await eventually('it moves', () => camera.motorOf('optical').x !== 0);
    const cancel = new AbortController();
    const second = running.command('Yard 2', 'ptz_move').read(payload).run(context(cancel.signal));
    expect(await refused).toMatch(/cancelled; the camera was stopped/u);
    const moves = () => camera.requests.filter(({ operation }) => /Move|Stop/u.test(operation));
    await eventually('it has its turn', () => moves().some(({ body }) => body.includes('thermal-')));
    cancel.abort();
    await second.catch(() => undefined);
    // Whether the second one sends velocity 0 as well depends on when the camera reports that it stands still.
    const begin = moves().slice(0, expected.length);
    expect(begin.map(({ operation }) => operation)).toEqual(expected);
  });
});

describe('A recorder with 16 channels and 4 cameras', () => {
  const channels = (absent: 'no_encoder' | 'unlisted') =>
    Array.from({ length: 16 }, (_, index) => ({
      token: `ch${index + 1}`,
      ptz: false,
      ...(index % 4 === 0 ? {} : { absent }),
    }));

  it.each([
    ['lists the sources that have one (onvif/specs#470)', 'unlisted'],
    ['names no encoder where there is none (agsh/onvif#369)', 'no_encoder'],
  ] as const)('is four assets where it %s', async (_, absent) => {
    const camera = await start({ sources: channels(absent) });
    const running = await open(camera);
    await online(4, running);
    expect(running.assets().map((text) => text.replace(/^.*DEVICE/u, ''))).toEqual([
      '',
      ':source:ch5',
      ':source:ch9',
      ':source:ch13',
    ]);
    expect(camera.count('GetStreamUri')).toBe(4);
  });

  it('has one that the options choose although it is not listed', async () => {
    const camera = await start({ sources: channels('unlisted') });
    const running = await open(camera, { sources: [{ token: 'ch1' }, { token: 'ch2' }] });
    await online(2, running);
    expect([...running.streams].map(([, url]) => url?.replace(/^.*\//u, ''))).toEqual(['ch1-sub', 'ch2-sub']);
  });

  it('shows a channel without a signal as offline, where it lists all of them', async () => {
    // onvif/specs#470.
    const camera = await start({ sources: two });
    const running = await open(camera);
    await online(2, running);
    await camera.next('PullMessages');
    const lost = (value: string, source: string): void =>
      camera.events.set('tns1:VideoSource/SignalLoss', 'State', value, source);
    lost('true', 'vs2');
    await eventually('it is offline', () => running.hub.assets()[1]?.reason === texts.no_signal);
    lost('false', 'vs2');
    await online(2, running);
    // The device itself answers.
    lost('true', 'vs1');
    await running.outbox.until(said('picture_fault', ({ detected }) => detected === true));
    await online(2, running);
  });

  it('shows a channel whose stream it refuses as offline, with its words', async () => {
    const camera = await start({ sources: two });
    camera.misbehave('GetStreamUri', () =>
      camera.requests.at(-1)?.body.includes('vs2') === true
        ? { fault: 'ter:InvalidStreamSetup', reason: 'no camera' }
        : 'normal',
    );
    const running = await open(camera);
    await online(1, running);
    await eventually('both are announced', () => running.assets().length === 2);
    expect(running.hub.assets()[1]?.reason).toMatch(/no camera/u);
  });
});

describe('A camera with one picture', () => {
  it('is one asset, and is not asked for its sources', async () => {
    const camera = await start({});
    const running = await open(camera);
    await online(1, running);
    expect(running.assets()).toEqual(['Yard online DEVICE']);
    expect(camera.count('GetVideoSources')).toBe(0);
  });

  it('is one asset with one motor where a lens has several views, or two lenses share a source', async () => {
    // A fisheye camera with a motor for each view (blakeblackshear/frigate#17919). So are a Bosch FLEXIDOME panoramic 5100i, with three
    // configurations of one source, and a Reolink TrackMix, whose lens that follows is a third profile (EthanFlower1/onvif-go, testdata/captures).
    const camera = await start({});
    const view = (token: string, width: number) =>
      `<trt:Profiles token="${token}"><tt:VideoSourceConfiguration token="view-${token}"><tt:SourceToken>VS0</tt:SourceToken></tt:VideoSourceConfiguration><tt:VideoEncoderConfiguration token="e"><tt:Encoding>H264</tt:Encoding><tt:Resolution><tt:Width>${width}</tt:Width><tt:Height>480</tt:Height></tt:Resolution></tt:VideoEncoderConfiguration><tt:PTZConfiguration token="ptzc-${token}"><tt:NodeToken>N</tt:NodeToken></tt:PTZConfiguration></trt:Profiles>`;
    camera.misbehave('GetProfiles', {
      body: `<trt:GetProfilesResponse>${view('1', 1920)}${view('2', 640)}</trt:GetProfilesResponse>`,
    });
    const running = await open(camera);
    await online(1, running);
    expect([...running.streams].map(([, url]) => url?.replace(/^.*\//u, ''))).toEqual(['2']);
    const moved = camera.next('ContinuousMove');
    await running.command('Yard', 'ptz_move').read({ direction: 'left' }).run(context());
    expect((await moved).body).toContain('<ProfileToken>2</ProfileToken>');
  });

  it('stays one asset where it names a source for each stream and lists one (onvif/specs#164)', async () => {
    const camera = await start({});
    const one = (token: string, width: number) =>
      `<trt:Profiles token="${token}"><tt:VideoSourceConfiguration token="${token}"><tt:SourceToken>${token}</tt:SourceToken></tt:VideoSourceConfiguration><tt:VideoEncoderConfiguration token="e"><tt:Encoding>H264</tt:Encoding><tt:Resolution><tt:Width>${width}</tt:Width><tt:Height>480</tt:Height></tt:Resolution></tt:VideoEncoderConfiguration></trt:Profiles>`;
    camera.misbehave('GetProfiles', {
      body: `<trt:GetProfilesResponse>${one('000', 1920)}${one('001', 640)}</trt:GetProfilesResponse>`,
    });
    camera.misbehave('GetVideoSources', {
      body: '<trt:GetVideoSourcesResponse><trt:VideoSources token="000"/></trt:GetVideoSourcesResponse>',
    });
    const running = await open(camera);
    await online(1, running);
    expect([...running.streams].map(([, url]) => url?.replace(/^.*\//u, ''))).toEqual(['001']);
    camera.events.set('tns1:VideoSource/MotionAlarm', 'State', 'true', '001');
    await running.outbox.until(said('motion', (data) => data['detected'] === true));
  });
});

describe('The source of an event', () => {
  const profile = (source: string, configuration: string, analytics: string) =>
    `<Profiles token="P-${source}"><VideoSourceConfiguration token="${configuration}"><SourceToken>${source}</SourceToken></VideoSourceConfiguration><VideoAnalyticsConfiguration token="${analytics}"/></Profiles>`;
  const reading = readEnvelope(
    `<e:Envelope xmlns:e="e"><e:Body><GetProfilesResponse>${profile('1', '2', 'VA1')}${profile('2', '3', 'VA2')}</GetProfilesResponse></e:Body></e:Envelope>`,
  );
  const profiles = reading.kind === 'read' ? profilesOf(reading.body) : [];

  it.each([
    // ONVIF Imaging Service Specification, section 5.5.1: Source is the token of the video source.
    ['Source', '2', '2'],
    ['VideoSourceToken', '2', '2'],
    // A DCS-2103 and cameras of its kind (dmitrif/onvif2mqtt#39).
    ['VideoSource', '1', '1'],
    // ONVIF Analytics Service Specification, Appendix A: rules name the configuration. It has the number of another source.
    ['VideoSourceConfigurationToken', '2', '1'],
    ['VideoSourceConfigurationToken', '3', '2'],
    // Some write the token of the source there.
    ['VideoSourceConfigurationToken', '1', '1'],
    ['VideoAnalyticsConfigurationToken', 'VA2', '2'],
    ['AnalyticsConfiguration', 'VA1', '1'],
    ['ProfileToken', 'P-2', '2'],
    ['Rule', '2', ''],
    ['VideoSourceToken', '9', ''],
    ['VideoSourceToken', '', ''],
  ])('is read from %s %s', (name, value, source) => {
    const message = readEnvelope(
      `<e:Envelope xmlns:e="e"><e:Body><PullMessagesResponse><NotificationMessage><Message><Message><Source><SimpleItem Name="Rule" Value="2"/><SimpleItem Name="${name}" Value="${value}"/></Source></Message></Message></NotificationMessage></PullMessagesResponse></e:Body></e:Envelope>`,
    );
    if (message.kind !== 'read') throw new Error(message.reason);
    expect([...divide(message.body, profiles).keys()]).toEqual([source]);
  });
});

it.each([
  {
    what: 'the order of the device at first',
    listed: ['a', 'b'],
    remembered: [],
    tokens: ['a', 'b'],
  },
  {
    what: 'the order of the first contact later',
    listed: ['b', 'c', 'a'],
    remembered: ['a', 'b'],
    tokens: ['a', 'b', 'c'],
  },
  { what: 'the first one while it is away', listed: ['b'], remembered: ['a', 'b'], tokens: ['a', 'b'] },
  { what: 'nothing of another device', listed: ['x'], remembered: ['a', 'b'], tokens: ['x'] },
  {
    what: 'what is chosen, in that order',
    listed: ['a', 'b', 'c'],
    remembered: [],
    chosen: ['c', 'a'],
    tokens: ['c', 'a'],
  },
  {
    what: 'the first one among what is chosen',
    listed: ['a', 'b', 'c'],
    remembered: ['a', 'b', 'c'],
    chosen: ['c', 'a'],
    tokens: ['a', 'c'],
  },
  {
    what: 'what is chosen and away',
    listed: ['a'],
    remembered: ['a', 'b'],
    chosen: ['a', 'b'],
    tokens: ['a', 'b'],
  },
  {
    what: 'what was never there as unknown',
    listed: ['a'],
    remembered: ['a'],
    chosen: ['a', 'z'],
    tokens: ['a', 'z'],
    unknown: ['z'],
  },
])('keeps $what', ({ listed, remembered, chosen, tokens, unknown = [] }) => {
  expect(planSources(listed, remembered, chosen)).toEqual({ tokens, unknown });
});
