/** Sirens, lights and zoom of vendor cameras: whatever is switched on or moves ends, also after a kill of the daemon. */
import { describe, expect, it } from 'vitest';
import { eventually } from '../../../support/eventually.ts';
import { runningLab, type VendorcamLab } from '../../../support/cameras/vendorcam-lab.ts';

const online = async (...about: Parameters<typeof runningLab>): Promise<VendorcamLab> => {
  const lab = await runningLab(...about);
  lab.camera.camera.hasSiren = true;
  lab.camera.camera.hasLight = true;
  lab.start();
  await lab.online();
  return lab;
};

describe('siren and light', () => {
  it.each(['siren', 'light'] as const)('switch a %s on, and off again after its time', async (kind) => {
    const it = await online();
    expect(await it.command(kind, { on: true, duration_s: 1 })).toEqual({ on: true, duration_s: 1 });
    expect(it.camera.camera[kind]).toBe(true);
    await eventually('it is off', () => !it.camera.camera[kind]);
  });

  it('switch off before the time is over', async () => {
    const it = await online();
    await it.command('siren', { on: true, duration_s: 60 });
    expect(await it.command('siren', { on: false })).toEqual({ on: false });
    expect(it.camera.camera.siren).toBe(false);
  });

  it('a later On replaces the time of the earlier one', async () => {
    const it = await online();
    await it.command('siren', { on: true, duration_s: 60 });
    await it.command('siren', { on: true, duration_s: 1 });
    await eventually('it is off', () => !it.camera.camera.siren);
    expect(it.camera.count('AudioAlarmPlay')).toBe(3);
  });

  it('leave nothing on when the connector stops', async () => {
    const it = await online();
    await it.command('siren', { on: true, duration_s: 60 });
    await it.command('light', { on: true, duration_s: 60 });
    await it.hub.stop();
    expect(it.camera.camera).toMatchObject({ siren: false, light: false });
  });

  it('send the Off after a restart when the camera was lost meanwhile', async () => {
    const it = await online();
    await it.command('siren', { on: true, duration_s: 1 });
    await it.camera.lose();
    await eventually('it is lost', () => it.asset('Gate')?.status === 'offline');
    await it.hub.stop();
    expect(it.camera.camera.siren).toBe(true);
    await it.camera.start();
    await it.restart();
    await eventually('it is off', () => !it.camera.camera.siren);
  });

  it('send Off when the answer to On was lost, and never On twice', async () => {
    const it = await online();
    it.camera.errors.set('AudioAlarmPlay', { code: -13, times: 1 });
    await expect(it.command('siren', { on: true })).rejects.toThrow(/Off was sent/u);
    expect(it.camera.count('AudioAlarmPlay')).toBe(2);
    expect(it.camera.camera.siren).toBe(false);
  });

  it('owe nothing when the camera refused the On', async () => {
    const it = await online();
    it.camera.errors.set('AudioAlarmPlay', { code: -26, times: 1 });
    await expect(it.command('siren', { on: true })).rejects.toThrow(/not allowed/u);
    expect(it.camera.count('AudioAlarmPlay')).toBe(1);
  });

  it('are refused for longer than their limit, and not offered where the camera has none', async () => {
    const it = await online();
    await expect(it.command('siren', { on: true, duration_s: 61 })).rejects.toThrow(/duration_s/u);
    it.camera.camera.hasSiren = false;
    await it.restart();
    await it.online();
    await expect(it.command('siren', { on: true })).rejects.toThrow(/no command/u);
  });
});

describe('movements', () => {
  it('say in their schema how long one lasts at most', async () => {
    const it = await online();
    const found = it.hub.hub.findCommand(it.asset('Gate')?.id ?? '', 'ptz_move');
    expect('command' in found && found.command.input_schema).toMatchObject({
      'x-kit-move-ms': expect.any(Number) as number,
    });
  });
});

describe('presets', () => {
  it('are choices by name in the schema of the command', async () => {
    const it = await online();
    const found = it.hub.hub.findCommand(it.asset('Gate')?.id ?? '', 'ptz_preset');
    expect('command' in found && found.command.input_schema).toMatchObject({
      properties: {
        preset_id: {
          oneOf: [
            { const: 1, title: 'Door' },
            { const: 2, title: 'Wall' },
          ],
        },
      },
    });
  });
});

describe('zoom', () => {
  it('moves the lens and stops automatically', async () => {
    const it = await online();
    const zooming = it.command('zoom', { direction: 'in', speed: 20 });
    await eventually('it zooms', () => it.camera.camera.motor.zoom === 1);
    expect(await zooming).toMatchObject({ direction: 'in', speed: 20 });
    expect(it.camera.camera.motor.zoom).toBe(0);
  });

  it('stops at once', async () => {
    const it = await online();
    const zooming = it.command('zoom', { direction: 'out' }).catch((error: unknown) => error);
    await eventually('it zooms', () => it.camera.camera.motor.zoom === -1);
    expect(await it.command('zoom', { direction: 'stop' })).toEqual({ direction: 'stop' });
    expect(it.camera.camera.motor.zoom).toBe(0);
    await zooming;
  });

  it('is offered for a motorised lens without pan and tilt', async () => {
    const it = await online({ firmware: { ptzType: 1 } });
    await expect(it.command('ptz_move', { direction: 'left' })).rejects.toThrow(/no command/u);
    expect(await it.command('zoom', { direction: 'in' })).toMatchObject({ speed: null });
  });
});
