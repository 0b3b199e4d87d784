/** Cameras that move stand still again, whatever happens to the task, the camera or the daemon. */
import { cp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { onvif } from '../../../../drivers/onvif/onvif.ts';
import type { Command } from '../../../../src/toolkit/driver/command.ts';
import type { DriverHost } from '../../../../src/toolkit/driver/driver.ts';
import type { FeedSet } from '../../../../src/contract/feeds.ts';
import {
  type FakeCamera,
  type FakeCameraSettings,
  startFakeCamera,
} from '../../../fakes/fake-onvif-camera.ts';
import { eventually } from '../../../support/eventually.ts';
import { type CameraLab, cameraLab, context } from '../../../support/cameras/onvif-lab.ts';
import { recordingLog } from '../../../support/recording-log.ts';
import { makeDirectory } from '../../../support/temporary.ts';

let lab: CameraLab;
let state_dir: string;
let camera: FakeCamera;
let stopping: AbortController;
let running: Promise<void> | undefined;
beforeEach(async () => {
  lab = await cameraLab();
  state_dir = await makeDirectory();
  stopping = new AbortController();
});
afterEach(async () => {
  stopping.abort();
  await running;
  await lab.stop();
  await camera.stop();
  await rm(state_dir, { recursive: true });
});

/** The driver with a host that hands out its commands. */
async function commandsOf(settings: Partial<FakeCameraSettings> = {}, move_s = 0.2) {
  camera = await startFakeCamera(settings);
  return serve(move_s);
}

async function serve(move_s = 0.2) {
  const entry = await lab.entry(camera);
  const { promise, resolve } = Promise.withResolvers<readonly Command[]>();
  const nothing = (): undefined => undefined;
  const host: DriverHost<FeedSet> = {
    signal: stopping.signal,
    log: recordingLog(),
    announce: (_, commands = []) => {
      resolve(commands);
      return {
        publish: nothing,
        setPosition: nothing,
        setOnline: nothing,
        setHealth: nothing,
        remove: nothing,
      };
    },
    files: { add: async () => Promise.reject(new Error('not used here')) },
    retract: nothing,
    reportKit: nothing,
    reportLink: nothing,
    reportLocation: nothing,
    serveGateway: nothing,
    publishGateway: nothing,
    linkType: () => null,
    stateFile: (name) => join(state_dir, name),
    reportStatus: nothing,
    onOptions: () => undefined,
  };
  running = onvif.configure({ cameras: [entry], ptz: { move_s }, pull_s: 5 })(host);
  const commands = await promise;
  const named = (name: string): Command => {
    const found = commands.find((each) => each.name === name);
    if (!found) throw new Error(`there is no ${name}`);
    return found;
  };
  return { move: named('ptz_move'), preset: named('ptz_preset') };
}

const operations = (): readonly string[] =>
  camera.requests.map(({ operation }) => operation).filter((name) => /Move|Stop|GotoPreset/u.test(name));

it.each([
  ['up', 0, 0.5],
  ['down', 0, -0.5],
  ['left', -0.5, 0],
  ['right', 0.5, 0],
])('moves %s and stops before it reports completion', async (direction, x, y) => {
  const { move } = await commandsOf();
  const asked = camera.next('ContinuousMove');
  const result = await move.read({ direction }).run(context());
  expect((await asked).body).toContain(`x="${x}" y="${y}"`);
  expect(result).toMatchObject({ direction, speed: 0.5, stopped: 'seen' });
  expect(camera.motor).toMatchObject({ x: 0, y: 0, moved: 1 });
});

it('pans a camera whose list of services leaves the PTZ service out', async () => {
  const { move } = await commandsOf({ unlisted: ['ptz'] });
  expect(await move.read({ direction: 'left' }).run(context())).toMatchObject({ stopped: 'seen' });
});

it('stops without a movement before it', async () => {
  const { move } = await commandsOf();
  expect(await move.read({ direction: 'stop' }).run(context())).toEqual({
    direction: 'stop',
    stopped: 'seen',
  });
  expect(operations()).toEqual(['Stop']);
});

it('stops at once when the task is cancelled', async () => {
  const { move } = await commandsOf({}, 10);
  const cancel = new AbortController();
  const moved = move
    .read({ direction: 'up' })
    .run(context(cancel.signal))
    .catch((error: unknown) => error);
  await eventually('it moves', () => camera.motor.y !== 0);
  cancel.abort();
  expect(String(await moved)).toMatch(/cancelled; the camera was stopped/u);
  expect(camera.motor.y).toBe(0);
});

it('stops when the daemon stops', async () => {
  const { move } = await commandsOf({}, 10);
  const moved = move
    .read({ direction: 'up' })
    .run(context())
    .catch((error: unknown) => error);
  await eventually('it moves', () => camera.motor.y !== 0);
  stopping.abort();
  await running;
  expect(camera.motor.y).toBe(0);
  expect(String(await moved)).toMatch(/cancelled/u);
});

it('stops one movement before the next one that supersedes it begins', async () => {
  const { move } = await commandsOf({}, 1);
  const cancel = new AbortController();
  const first = move
    .read({ direction: 'up' })
    .run(context(cancel.signal))
    .catch((error: unknown) => error);
  await eventually('it moves', () => camera.motor.y !== 0);
  cancel.abort();
  await move.read({ direction: 'left' }).run(context());
  await first;
  expect(operations()).toEqual(['ContinuousMove', 'Stop', 'ContinuousMove', 'ContinuousMove', 'Stop']);
});

it('moves without a timeout where the timeout is refused', async () => {
  const { move } = await commandsOf();
  camera.misbehave('ContinuousMove', () =>
    camera.requests.at(-1)?.body.includes('Timeout') ? { fault: 'ter:InvalidArgVal' } : 'normal',
  );
  await move.read({ direction: 'up' }).run(context());
  expect(operations()).toEqual(['ContinuousMove', 'ContinuousMove', 'Stop']);
});

it('stops with velocity 0 where there is no Stop', async () => {
  const { move } = await commandsOf();
  camera.misbehave('Stop', { fault: 'ter:ActionNotSupported' });
  await move.read({ direction: 'up' }).run(context());
  expect(operations()).toEqual(['ContinuousMove', 'Stop', 'ContinuousMove']);
  expect(camera.motor.y).toBe(0);
});

it('fails with a warning when the camera takes no stop at all', async () => {
  const { move } = await commandsOf();
  let moves = 0;
  camera.misbehave('Stop', { fault: 'ter:Busy' });
  camera.misbehave('ContinuousMove', () => (++moves > 1 ? { fault: 'ter:Busy' } : 'normal'));
  await expect(move.read({ direction: 'up' }).run(context())).rejects.toThrow(/may still be moving/u);
});

it.each(['reports', 'does not report'])(
  'stops with velocity 0 a camera that accepts Stop and ignores it, and %s that it moves',
  async (way) => {
    const { move } = await commandsOf();
    camera.misbehave('Stop', { body: '<StopResponse/>' });
    if (way !== 'reports') camera.misbehave('GetStatus', { fault: 'ter:ActionNotSupported' });
    const stopped = way === 'reports' ? 'seen' : 'accepted';
    expect(await move.read({ direction: 'up' }).run(context())).toMatchObject({ stopped });
    expect(operations()).toEqual(['ContinuousMove', 'Stop', 'ContinuousMove']);
    expect(camera.motor.y).toBe(0);
  },
);

it('fails when the camera takes the stop and velocity 0 and still moves', async () => {
  const { move } = await commandsOf();
  let moves = 0;
  camera.misbehave('Stop', { body: '<StopResponse/>' });
  camera.misbehave('ContinuousMove', () => (++moves > 1 ? { body: '<ContinuousMoveResponse/>' } : 'normal'));
  await expect(move.read({ direction: 'up' }).run(context())).rejects.toThrow(/still moves/u);
});

it('reports that the outcome is unknown when the movement was not answered, and stops', async () => {
  const { move } = await commandsOf();
  camera.misbehave('ContinuousMove', 'abort');
  await expect(move.read({ direction: 'up' }).run(context())).rejects.toThrow(/unknown/u);
  expect(operations()).toEqual(['ContinuousMove', 'Stop']);
});

it('does nothing when a movement is refused, or when too little time is left', async () => {
  const { move } = await commandsOf();
  await expect(move.read({ direction: 'up' }).run(context(undefined, 500))).rejects.toThrow(
    /command not sent/u,
  );
  expect(operations()).toEqual([]);
  camera.misbehave('ContinuousMove', { fault: 'ter:InvalidPosition' });
  await expect(move.read({ direction: 'up' }).run(context())).rejects.toThrow(/no movement began/u);
});

it.each(['1', '1.0', 'a&b'])('goes to the preset %s by its token, escaped', async (preset_token) => {
  const { preset } = await commandsOf();
  camera.motor.move(1, 0);
  expect(await preset.read({ preset_token }).run(context())).toMatchObject({ preset_token, reached: 'seen' });
  expect(camera.motor.preset).toBe(preset_token.replace('&', '&#38;'));
});

it('refuses a preset that the camera does not have, though the camera would take it', async () => {
  const { preset } = await commandsOf();
  const evil = '1</PresetToken><Evil/>';
  await expect(preset.read({ preset_token: evil }).run(context())).rejects.toThrow(
    /has no preset.*command not sent/u,
  );
  await expect(preset.read({ preset_token: 'Yard' }).run(context())).rejects.toThrow(
    /is the name of the preset "a&b"/u,
  );
  expect(operations()).toEqual([]);
});

it('says "accepted" where the camera does not tell whether it moves', async () => {
  const { move, preset } = await commandsOf();
  camera.misbehave('GetStatus', { fault: 'ter:ActionNotSupported' });
  expect(await move.read({ direction: 'up' }).run(context())).toMatchObject({ stopped: 'accepted' });
  expect(await preset.read({ preset_token: '1' }).run(context())).toMatchObject({ reached: 'accepted' });
});

it('stops on its way to a preset when the task is cancelled', async () => {
  const { preset } = await commandsOf();
  const moving =
    '<GetStatusResponse><PTZStatus><MoveStatus><PanTilt>MOVING</PanTilt></MoveStatus></PTZStatus></GetStatusResponse>';
  camera.misbehave('GetStatus', () => (camera.count('Stop') > 0 ? 'normal' : { body: moving }));
  const cancel = new AbortController();
  const gone = preset
    .read({ preset_token: '1' })
    .run(context(cancel.signal))
    .catch((error: unknown) => error);
  await eventually('it is on its way', () => camera.count('GetStatus') > 0);
  cancel.abort();
  expect(String(await gone)).toMatch(/cancelled; the camera was stopped/u);
});

it('stops a movement that a killed daemon left, before it asks anything else', async () => {
  const { move } = await commandsOf({}, 10);
  const moved = move
    .read({ direction: 'up' })
    .run(context())
    .catch((error: unknown) => error);
  await eventually('it moves', () => camera.motor.y !== 0);
  // What is on the disk now is all that a kill leaves.
  const left = await makeDirectory();
  await cp(state_dir, left, { recursive: true });
  stopping.abort();
  await Promise.all([running, moved]);
  await cp(left, state_dir, { recursive: true });
  await rm(left, { recursive: true });
  camera.motor.move(0, 1);
  camera.forget();
  stopping = new AbortController();
  await serve();
  expect(camera.motor.y).toBe(0);
  const asked = camera.requests.map(({ operation }) => operation);
  expect(asked.indexOf('Stop')).toBe(asked.indexOf('GetDeviceInformation') + 1);
  // It is owed once.
  stopping.abort();
  await running;
  camera.forget();
  stopping = new AbortController();
  await serve();
  expect(operations()).toEqual([]);
});

it('stops with velocity 0 a movement that a lost camera was left in, where Stop is ignored', async () => {
  const { move } = await commandsOf({}, 0.3);
  camera.misbehave('Stop', { body: '<StopResponse/>' });
  const moved = move.read({ direction: 'up' }).run(context());
  moved.catch(() => undefined);
  await eventually('it moves', () => camera.motor.y !== 0);
  await camera.lose();
  await expect(moved).rejects.toThrow(/may still be moving/u);
  await camera.restore();
  await eventually('it stands still', () => camera.motor.y === 0);
});

it('sends the stop again when a camera that was lost while it moved is back', async () => {
  const { move } = await commandsOf({}, 0.3);
  const moved = move.read({ direction: 'up' }).run(context());
  moved.catch(() => undefined);
  await eventually('it moves', () => camera.motor.y !== 0);
  await camera.lose();
  await expect(moved).rejects.toThrow(/may still be moving/u);
  expect(camera.motor.y).not.toBe(0);
  await camera.restore();
  await eventually('it stands still', () => camera.motor.y === 0);
});

it('reports how long it really moved', async () => {
  const { move } = await commandsOf();
  camera.misbehave('Stop', () => (camera.count('Stop') === 1 ? 'hang' : 'normal'));
  const begin_ms = performance.now();
  const { moved_ms } = await move.read({ direction: 'up' }).run(context());
  expect(moved_ms).toBeGreaterThan(1_300);
  expect(moved_ms).toBeLessThanOrEqual(performance.now() - begin_ms);
});

it('shows the detail of a fault, where cameras put the cause', async () => {
  const { move } = await commandsOf();
  const detail = '<s:Detail><ter:Text>the motor is in calibration</ter:Text></s:Detail>';
  const fault = `<s:Fault><s:Code><s:Value>s:Receiver</s:Value></s:Code><s:Reason><s:Text>Action failed</s:Text></s:Reason>${detail}</s:Fault>`;
  camera.misbehave('ContinuousMove', { body: fault, status: 500 });
  await expect(move.read({ direction: 'up' }).run(context())).rejects.toThrow(
    /Action failed: the motor is in calibration/u,
  );
});

it('stops at speed 0', async () => {
  const { move } = await commandsOf();
  expect(await move.read({ direction: 'up', speed: 0 }).run(context())).toEqual({
    direction: 'stop',
    stopped: 'seen',
  });
  expect(operations()).toEqual(['Stop']);
});
