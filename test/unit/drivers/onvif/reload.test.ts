/** A reload that changes one of several cameras while the driver runs. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type FakeCamera, startFakeCamera } from '../../../fakes/fake-onvif-camera.ts';
import { type CameraLab, cameraLab, context } from '../../../support/cameras/onvif-lab.ts';
import { eventually } from '../../../support/eventually.ts';

let lab: CameraLab;
let gate: FakeCamera;
let yard: FakeCamera;
beforeEach(async () => {
  lab = await cameraLab();
  gate = await startFakeCamera({ serial: 'GATE-0001', mac: '02:00:00:00:00:01' });
  yard = await startFakeCamera({ serial: 'YARD-0002', mac: '02:00:00:00:00:02' });
});
afterEach(async () => {
  await lab.stop();
  await gate.stop();
  await yard.stop();
});

/** Serves both cameras. */
async function running() {
  const first = await lab.entry(gate, { name: 'gate' });
  const second = await lab.entry(yard, { name: 'yard' });
  const optionsOf = (...cameras: readonly object[]) => ({ pull_s: 5, ptz: { move_s: 10 }, cameras });
  const { hub, outbox } = lab.run(optionsOf(first, second));
  const statusOf = (name: string) => hub.assets().find((asset) => asset.name === name)?.status;
  await eventually('both are online', () => statusOf('gate') === 'online' && statusOf('yard') === 'online');
  const reload = (...cameras: readonly object[]) => hub.changeOptions('cameras', optionsOf(...cameras));
  return { hub, outbox, first, second, statusOf, reload };
}

describe('a reload', () => {
  it('reconnects the one camera that changed, and leaves the other alone', async () => {
    const { first, second, statusOf, reload, outbox, hub } = await running();
    gate.forget();
    yard.forget();
    outbox.clear();
    const reconnected = yard.next('GetDeviceInformation');
    expect(reload(first, { ...second, auth: 'digest' })).toEqual([]);
    await reconnected;
    await eventually('it is online', () => statusOf('yard') === 'online');
    expect(gate.count('GetDeviceInformation')).toBe(0);
    expect(gate.count('Unsubscribe')).toBe(0);
    expect(hub.drivers()[0]).toMatchObject({ state: 'up', runs: 1 });
  });

  it('stops a camera that moves before it is configured in another way, and before it is removed', async () => {
    const { hub, first, second, statusOf, reload } = await running();
    for (const next of [[first, { ...second, auth: 'ws_security' }], [first]]) {
      const id = hub.assets().find((asset) => asset.name === 'yard')?.id ?? '';
      const found = hub.findCommand(id, 'ptz_move');
      if (!('command' in found)) throw new Error(found.refusal);
      const moved = found.command.read({ direction: 'up' }).run(context()).catch(String);
      await eventually('it moves', () => yard.motor.y !== 0);
      const reconnected = yard.next('GetDeviceInformation');
      reload(...next);
      await eventually('it stands still', () => yard.motor.y === 0);
      expect(await moved).toMatch(/cancelled/u);
      const isServed = next.length === 2;
      if (isServed) await reconnected;
      const expected = isServed ? 'online' : undefined;
      await eventually('it is served as configured', () => statusOf('yard') === expected);
    }
    expect(statusOf('gate')).toBe('online');
    expect(hub.drivers()[0]?.facts).toMatchObject({ cameras: 1, cameras_online: 1 });
  });
});
