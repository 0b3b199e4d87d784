/** Ways of a camera that end by themselves, patrols, what it switches, and what it says it has and has not. */
import { describe, expect, it } from 'vitest';
import type { FakeCamera, FakeCameraSettings } from '../../../fakes/fake-onvif-camera.ts';
import { eventually } from '../../../support/eventually.ts';
import { context, labOfEachTest, said } from '../../../support/cameras/onvif-lab.ts';

const lab = labOfEachTest();
let camera: FakeCamera;

async function serve(settings: Partial<FakeCameraSettings>, move_s = 0.2) {
  camera = await lab.start({ snapshot: undefined, ...settings });
  const running = lab.run({ cameras: [await lab.entry(camera)], ptz: { move_s } });
  await running.outbox.until(said('status', ({ online }) => online === true));
  const id = running.hub.assets()[0]?.id ?? '';
  const named = (name: string) => {
    const found = running.hub.findCommand(id, name);
    if (!('command' in found)) throw new Error(found.refusal);
    return found.command;
  };
  const offered = (): readonly string[] => {
    const about = running.outbox.drafts.findLast(({ channel }) => channel.endsWith(`${id}/commands`))?.data;
    const list = about?.['commands'];
    return Array.isArray(list) ? list.map((each) => String((each as { name: unknown }).name)) : [];
  };
  const run = async (name: string, payload: object = {}, signal?: AbortSignal) =>
    named(name).read(payload).run(context(signal));
  return { ...running, named, offered, run };
}

const asked = (): readonly string[] =>
  camera.requests
    .map(({ operation }) => operation)
    .filter((name) => /Move|Stop|Goto|Operate|Auxiliary|SetRelay/u.test(name));

const generic = [
  { name: 'AbsolutePanTiltPositionSpace', uri: 'PanTiltSpaces/PositionGenericSpace' },
  {
    name: 'AbsoluteZoomPositionSpace',
    uri: 'ZoomSpaces/PositionGenericSpace',
    x: [0, 1] as [number, number],
  },
  { name: 'RelativePanTiltTranslationSpace', uri: 'PanTiltSpaces/TranslationGenericSpace' },
  { name: 'RelativePanTiltTranslationSpace', uri: 'PanTiltSpaces/TranslationSpaceFov' },
];

describe('A camera with positions', () => {
  it('goes to one in its own coordinates, which the schema has', async () => {
    // Thingino counts degrees in the generic space (blakeblackshear/frigate#14170).
    const degrees = { ...generic[0]!, x: [0, 360] as [number, number], y: [0, 180] as [number, number] };
    const { named, run } = await serve({ spaces: [degrees] });
    expect(named('ptz_absolute').input_schema).toMatchObject({
      properties: { pan: { minimum: 0, maximum: 360 }, tilt: { minimum: 0, maximum: 180 } },
      required: ['pan', 'tilt'],
    });
    expect(await run('ptz_absolute', { pan: 270, tilt: 90 })).toEqual({
      pan: 270,
      tilt: 90,
      reached: 'seen',
    });
    expect(camera.motor.way).toEqual({ x: 270, y: 90, zoom: 0 });
    expect(() => named('ptz_absolute').read({ pan: 400, tilt: 0 })).toThrow(/360/u);
  });

  it('leaves its lens alone unless the zoom is named', async () => {
    const { run } = await serve({ spaces: generic });
    await run('ptz_absolute', { pan: 0.5, tilt: -0.5, zoom: 0.25 });
    expect(camera.motor.way).toEqual({ x: 0.5, y: -0.5, zoom: 0.25 });
    await run('ptz_absolute', { pan: 0, tilt: 0 });
    expect(camera.requests.findLast(({ operation }) => operation === 'AbsoluteMove')?.body).not.toContain(
      'Zoom',
    );
  });

  it('is seen there only once it stands at the position, not before it has begun', async () => {
    const { run } = await serve({ spaces: generic });
    camera.motor.way_ms = 300;
    let answers = 0;
    const still =
      '<GetStatusResponse><PTZStatus><Position><PanTilt x="0" y="0"/></Position><MoveStatus><PanTilt>IDLE</PanTilt></MoveStatus></PTZStatus></GetStatusResponse>';
    camera.misbehave('GetStatus', () => (++answers < 3 ? { body: still } : 'normal'));
    expect(await run('ptz_absolute', { pan: 1, tilt: 0 })).toMatchObject({ reached: 'seen' });
    expect(answers).toBeGreaterThan(2);
  });

  it('is not said to be there when it stands elsewhere', async () => {
    const { run } = await serve({ spaces: generic });
    camera.misbehave('AbsoluteMove', { body: '<AbsoluteMoveResponse/>' });
    expect(await run('ptz_absolute', { pan: 1, tilt: 0 })).toMatchObject({ reached: 'accepted' });
  });

  it('is not said to have gone anywhere when it accepts a way and stays (starkillerOG/reolink_aio#147)', async () => {
    const { run } = await serve({ spaces: generic });
    camera.misbehave('RelativeMove', { body: '<RelativeMoveResponse/>' });
    expect(await run('ptz_relative', { pan: 0.5 })).toMatchObject({ reached: 'accepted' });
  });

  it('turns by parts of the picture where it can', async () => {
    const { run } = await serve({ spaces: generic });
    expect(await run('ptz_relative', { pan: 0.5 })).toEqual({ pan: 0.5, tilt: 0, reached: 'seen' });
    const { body = '' } = camera.requests.findLast(({ operation }) => operation === 'RelativeMove') ?? {};
    expect(body).toMatch(/<PanTilt [^>]*x="0.5" y="0" space="[^"]*TranslationSpaceFov"\/>/u);
  });

  it('goes home', async () => {
    const { run, offered } = await serve({ home: true });
    camera.motor.goTo(undefined, 2);
    expect(await run('ptz_home')).toEqual({ reached: 'seen' });
    expect(offered()).not.toContain('ptz_absolute');
  });

  it('is stopped on its way, and offers a stop of its own where it has no velocities', async () => {
    const { run, offered } = await serve({ spaces: generic, hasNoVelocity: true, presets: [] });
    expect(offered()).toEqual(['ptz_preset', 'ptz_absolute', 'ptz_relative', 'ptz_stop']);
    camera.motor.way_ms = 60_000;
    const cancel = new AbortController();
    const gone = run('ptz_absolute', { pan: 1, tilt: 0 }, cancel.signal).catch((error: unknown) => error);
    await eventually('it is on its way', () => camera.count('GetStatus') > 0);
    cancel.abort();
    expect(String(await gone)).toMatch(/cancelled; the camera was stopped/u);
    expect(await run('ptz_stop')).toEqual({ stopped: 'seen' });
  });
});

describe('A camera that accepts a way and begins a moment later', () => {
  it('is seen to have arrived only after that', async () => {
    const { run } = await serve({ home: true });
    camera.motor.way_ms = 600;
    let answers = 0;
    const still =
      '<GetStatusResponse><PTZStatus><MoveStatus><PanTilt>IDLE</PanTilt></MoveStatus></PTZStatus></GetStatusResponse>';
    camera.misbehave('GetStatus', () => (++answers <= 2 ? { body: still } : 'normal'));
    expect(await run('ptz_home')).toEqual({ reached: 'seen' });
    expect(camera.motor.isMoving).toBe(false);
  });
});

describe('A camera that holds the answer to GetStatus until it stands still', () => {
  // onvif/testspecs#132.
  it('is stopped in the middle of it when the task is superseded', async () => {
    const { run } = await serve({ holdsStatus: true });
    camera.motor.way_ms = 60_000;
    const superseded = new AbortController();
    const gone = run('ptz_preset', { preset_token: '1' }, superseded.signal).catch((error: unknown) => error);
    await eventually('it is on its way', () => camera.count('GetStatus') > 1);
    superseded.abort();
    expect(String(await gone)).toMatch(/cancelled; the camera was stopped/u);
    expect(camera.count('GetStatus')).toBe(2);
    expect(camera.motor.isMoving).toBe(false);
  });

  it('is stopped at once however often it was, since what is not waited for holds no connection', async () => {
    const { run } = await serve({ holdsStatus: true });
    camera.motor.way_ms = 60_000;
    for (let times = 0; times < 5; times += 1) {
      camera.forget();
      const superseded = new AbortController();
      const gone = run('ptz_preset', { preset_token: '1' }, superseded.signal).catch(
        (error: unknown) => error,
      );
      await eventually('it is on its way', () => camera.count('GetStatus') > 1);
      // It goes on holding its answer, whatever it is sent.
      const stop = camera.motor.stop.bind(camera.motor);
      camera.motor.stop = () => undefined;
      superseded.abort();
      await gone;
      expect(camera.count('Stop')).toBe(1);
      camera.motor.stop = stop;
      stop();
    }
  });

  it('is seen to have arrived by that answer, however long the way is', async () => {
    const { run } = await serve({ holdsStatus: true });
    camera.motor.goTo(undefined, 2);
    camera.motor.way_ms = 3_500;
    expect(await run('ptz_preset', { preset_token: '1' })).toMatchObject({ reached: 'seen' });
    // The first one is before the way.
    expect(camera.count('GetStatus')).toBe(2);
  });

  it('is stopped before it has answered the movement, and again after that', async () => {
    const { run } = await serve({}, 5);
    let answer = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const { promise: begun, resolve: onBegun } = Promise.withResolvers<void>();
    const move = camera.motor.move.bind(camera.motor);
    camera.misbehave('ContinuousMove', () => {
      if (camera.count('ContinuousMove') > 1) return 'normal';
      onBegun();
      void held.then(() => move(1, 0));
      return 'hang';
    });
    const cancel = new AbortController();
    const gone = run('ptz_move', { direction: 'right' }, cancel.signal).catch((error: unknown) => error);
    await begun;
    cancel.abort();
    await eventually('a stop is sent', () => camera.count('Stop') === 1);
    answer();
    await gone;
    expect(camera.count('Stop')).toBeGreaterThan(1);
    expect(camera.motor.isMoving).toBe(false);
  });
});

describe('A patrol of a camera', () => {
  const tours = [{ token: '7', name: 'Fence' }];

  it('is a preset, and a stop ends it', async () => {
    const { run, named } = await serve({ tours });
    expect(named('ptz_preset').input_schema).toMatchObject({
      properties: {
        preset_token: {
          oneOf: expect.arrayContaining([
            { const: 'tour:7', title: 'Patrol Fence', type: 'string' },
          ]) as unknown,
        },
      },
    });
    expect(await run('ptz_preset', { preset_token: 'tour:7' })).toEqual({
      preset_token: 'tour:7',
      name: 'Fence',
      started: 'seen',
    });
    expect(camera.motor.tour).toBe('7');
    expect(await run('ptz_move', { direction: 'stop' })).toEqual({ direction: 'stop', stopped: 'seen' });
    expect(camera.motor.tour).toBeUndefined();
    expect(asked().slice(-2)).toEqual(['Stop', 'OperatePresetTour']);
  });

  it('is ended when its task is cancelled while it starts', async () => {
    const { run } = await serve({ tours });
    const cancel = new AbortController();
    camera.misbehave('OperatePresetTour', () => {
      cancel.abort();
      return 'normal';
    });
    await expect(run('ptz_preset', { preset_token: 'tour:7' }, cancel.signal)).rejects.toThrow(
      /cancelled; the camera was stopped/u,
    );
    expect(camera.motor.tour).toBeUndefined();
  });

  it('is not started by a camera that refuses it', async () => {
    const { run } = await serve({ tours });
    camera.misbehave('OperatePresetTour', { fault: 'ter:ActivationFailed' });
    await expect(run('ptz_preset', { preset_token: 'tour:7' })).rejects.toThrow(
      /ActivationFailed.*no movement/u,
    );
  });
});

describe('What cannot move', () => {
  it('is not offered by a fixed camera with digital positions', async () => {
    // Hikvision DS-2CV2Q21FD-IW (blakeblackshear/frigate#8044).
    const { offered } = await serve({
      hasNoVelocity: true,
      presets: [],
      spaces: [
        {
          name: 'AbsolutePanTiltPositionSpace',
          uri: 'PanTiltSpaces/DigitalPositionSpace',
          x: [0, 1],
          y: [0, 1],
        },
        { name: 'AbsoluteZoomPositionSpace', uri: 'ZoomSpaces/NormalizedDigitalPosition', x: [0, 1] },
      ],
      maximum_presets: 0,
    });
    expect(offered()).toEqual([]);
  });

  it('is not offered where its range is from 0 to 0', async () => {
    // blakeblackshear/frigate#14170.
    const { offered, named } = await serve({
      hasNoVelocity: true,
      spaces: [
        { name: 'ContinuousPanTiltVelocitySpace', uri: 'PanTiltSpaces/VelocityGenericSpace', x: [0, 0] },
        { name: 'ContinuousZoomVelocitySpace', uri: 'ZoomSpaces/VelocityGenericSpace', x: [0, 0] },
        { name: 'AbsoluteZoomPositionSpace', uri: 'ZoomSpaces/PositionGenericSpace', x: [1, 1] },
      ],
    });
    expect(offered()).toEqual(['ptz_move', 'ptz_preset']);
    expect(named('ptz_move').input_schema).toMatchObject({
      properties: { direction: { enum: ['up', 'down', 'stop'] } },
    });
  });

  it('is not offered any more once the camera has said that it has it not', async () => {
    // agsh/onvif#9.
    const { offered, run } = await serve({});
    camera.misbehave('ContinuousMove', { fault: 'ter:SpaceNotSupported' });
    await expect(run('zoom', { direction: 'in' })).rejects.toThrow(/SpaceNotSupported.*no movement began/u);
    await eventually('it is withdrawn', () => !offered().includes('zoom'));
    expect(offered()).toEqual(['ptz_move', 'ptz_preset']);
  });
});

describe('What a camera switches', () => {
  it('is offered as it announces it, and sent as it stands', async () => {
    // Reserved ones are those of ONVIF Core, section 8.6; others are named freely there: Aux_Lighting (quatanium/python-onvif#111).
    const { run, named } = await serve({
      auxiliary: ['tt:Wiper|On', 'tt:Wiper|Off', 'tt:Irlamp|On', 'Aux_Lighting'],
      device_auxiliary: ['tt:IRLamp|Auto'],
    });
    expect(named('auxiliary').input_schema).toMatchObject({
      properties: {
        command: {
          oneOf: [
            { const: 'tt:Wiper|On', title: 'Wiper: On' },
            { const: 'tt:Wiper|Off', title: 'Wiper: Off' },
            { const: 'tt:Irlamp|On', title: 'Irlamp: On' },
            { const: 'Aux_Lighting', title: 'Aux_Lighting' },
            { const: 'tt:IRLamp|Auto', title: 'IRLamp: Auto' },
          ],
        },
      },
    });
    for (const command of ['tt:Wiper|On', 'Aux_Lighting', 'tt:IRLamp|Auto']) {
      expect(await run('auxiliary', { command })).toEqual({ command, switched: 'accepted' });
    }
    expect([...camera.switched]).toEqual([
      ['tt:Wiper', 'On'],
      ['Aux_Lighting', ''],
      ['tt:IRLamp', 'Auto'],
    ]);
    expect(() => named('auxiliary').read({ command: 'tt:Heater|On' })).toThrow(/Invalid option/u);
  });

  it('is offered by a fixed camera, too', async () => {
    const { offered } = await serve({ ptz: false, device_auxiliary: ['tt:IRLamp|On'], relays: ['R1'] });
    expect(offered()).toEqual(['relay', 'auxiliary']);
  });

  // With the elements of the device service in both (home-assistant/core PR 161480).
  it.each([
    ['the device service', ['media', 'ptz', 'events']],
    ['Device IO', ['media', 'ptz', 'events', 'deviceio']],
  ])('is a relay of %s', async (_, services) => {
    const { run, named } = await serve({ relays: ['R&1', 'R2'], services });
    expect(named('relay').input_schema).toMatchObject({
      properties: { output: { enum: ['R&1', 'R2'] } },
      required: ['output', 'on'],
    });
    expect(await run('relay', { output: 'R2', on: true })).toEqual({
      output: 'R2',
      on: true,
      switched: 'accepted',
    });
    expect(camera.switched.get('R2')).toBe('active');
    await run('relay', { output: 'R2', on: false });
    expect(camera.switched.get('R2')).toBe('inactive');
  });

  it('is not sent twice when its answer is lost', async () => {
    const { run } = await serve({ relays: ['R1'] });
    camera.misbehave('SetRelayOutputState', 'abort');
    await expect(run('relay', { on: true })).rejects.toThrow(/whether it was switched is unknown/u);
    expect(camera.count('SetRelayOutputState')).toBe(1);
    camera.misbehave('SetRelayOutputState', { fault: 'ter:RelayToken' });
    await expect(run('relay', { on: true })).rejects.toThrow(/RelayToken.*nothing was switched/u);
  });

  it('is not offered where it announces nothing', async () => {
    // Others offer a wiper to each camera with a motor (home-assistant/core#105798).
    const { offered } = await serve({});
    expect(offered()).toEqual(['ptz_move', 'zoom', 'ptz_preset']);
  });
});
