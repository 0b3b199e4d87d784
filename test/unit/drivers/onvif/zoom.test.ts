/** Zoom and named presets of ONVIF cameras. */
import { describe, expect, it } from 'vitest';
import type { Limits } from '../../../../drivers/onvif/limits.ts';
import { type FakeCamera, type FakeCameraSettings } from '../../../fakes/fake-onvif-camera.ts';
import { eventually } from '../../../support/eventually.ts';
import { labOfEachTest, context, said } from '../../../support/cameras/onvif-lab.ts';

const lab = labOfEachTest();
let camera: FakeCamera;

async function serve(settings: Partial<FakeCameraSettings> = {}, move_s = 0.2, limits: Partial<Limits> = {}) {
  camera = await lab.start(settings);
  return open(move_s, limits);
}

async function open(move_s: number, limits: Partial<Limits> = {}) {
  const running = lab.run({ cameras: [await lab.entry(camera)], ptz: { move_s } }, { limits });
  await running.outbox.until(said('status', ({ online }) => online === true));
  const id = running.hub.assets()[0]?.id ?? '';
  const command = (name: string) => {
    const found = running.hub.findCommand(id, name);
    if (!('command' in found)) throw new Error(found.refusal);
    return found.command;
  };
  return { ...running, command };
}

describe('zoom of an ONVIF camera', () => {
  it.each([
    ['in', 0.5],
    ['out', -0.5],
  ])('zooms %s and stops before it is reported', async (direction, velocity) => {
    const { command } = await serve();
    const asked = camera.next('ContinuousMove');
    const result = await command('zoom').read({ direction }).run(context());
    expect((await asked).body).toMatch(new RegExp(`<Zoom [^>]*x="${velocity}"/>`, 'u'));
    expect(result).toMatchObject({ direction, speed: 0.5, stopped: 'seen' });
    expect(camera.motor).toMatchObject({ zoom: 0, x: 0, y: 0 });
  });

  it('stops at once, and at speed 0', async () => {
    const { command } = await serve();
    for (const payload of [{ direction: 'stop' }, { direction: 'in', speed: 0 }]) {
      expect(await command('zoom').read(payload).run(context())).toEqual({
        direction: 'stop',
        stopped: 'seen',
      });
    }
    expect(camera.count('ContinuousMove')).toBe(0);
  });

  it('is stopped by the next run when the daemon was lost and the camera refused every Stop', async () => {
    const first = await serve({}, 0.2);
    for (const operation of ['Stop']) camera.misbehave(operation, { fault: 'ter:NoStop' });
    let moves = 0;
    camera.misbehave('ContinuousMove', () => (++moves === 1 ? 'normal' : { fault: 'ter:NoMove' }));
    await expect(first.command('zoom').read({ direction: 'in' }).run(context())).rejects.toThrow(
      /may still be moving/u,
    );
    expect(camera.motor.zoom).not.toBe(0);
    await first.stop();
    camera.misbehave('Stop', 'normal');
    await open(0.2);
    await eventually('it stands still', () => camera.motor.zoom === 0);
  });

  it('stops the lens with velocity 0 where the camera has no Stop', async () => {
    const { command } = await serve();
    camera.misbehave('Stop', { fault: 'ter:ActionNotSupported' });
    await command('zoom').read({ direction: 'in' }).run(context());
    expect(camera.motor.zoom).toBe(0);
  });

  it('is not offered by a camera whose nodes have no zoom', async () => {
    const { command } = await serve({ zoom: false });
    expect(() => command('zoom')).toThrow(/no command/u);
    expect(command('ptz_move').name).toBe('ptz_move');
  });

  it('says in its schema how long one movement lasts, as the pan does', async () => {
    const { command } = await serve();
    for (const name of ['zoom', 'ptz_move']) {
      expect(command(name).input_schema).toMatchObject({ 'x-kit-move-ms': expect.any(Number) as number });
    }
  });
});

describe('presets of an ONVIF camera', () => {
  it('are choices by name in the schema of the command', async () => {
    const { command } = await serve();
    expect(command('ptz_preset').input_schema).toMatchObject({
      properties: {
        preset_token: {
          oneOf: [
            { const: '1', title: 'Gate' },
            { const: '1.0', title: 'Gate' },
            { const: 'a&b', title: 'Yard' },
          ],
        },
      },
    });
  });

  it('follow the list of the camera while it is served', async () => {
    const { command } = await serve({}, 0.2, { presets_again_ms: 100 });
    camera.settings.presets.push({ token: '9', name: 'Barn' });
    await eventually('the new one is offered', () =>
      JSON.stringify(command('ptz_preset').input_schema).includes('Barn'),
    );
  });

  it('are free text where the camera lists none', async () => {
    const { command } = await serve({ presets: [] });
    expect(command('ptz_preset').input_schema).toMatchObject({
      properties: { preset_token: { type: 'string' } },
    });
  });
});
