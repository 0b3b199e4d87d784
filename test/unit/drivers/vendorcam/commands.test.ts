/** What vendor cameras are told: moves that always end, presets, motion detection and restarts. */
import { describe, expect, it } from 'vitest';
import { CommandRefused } from '../../../../src/platform/errors.ts';
import { elapse } from '../../../support/elapse.ts';
import { eventually } from '../../../support/eventually.ts';
import { runningLab, servedLab, type VendorcamLab } from '../../../support/cameras/vendorcam-lab.ts';
import { texts } from '../../../../drivers/vendorcam/texts.ts';

/** Sees that the camera stands still, and goes on doing so. */
const standsStill = async ({ camera }: VendorcamLab): Promise<void> => {
  const { motor } = camera.camera;
  expect(motor.isMoving).toBe(false);
  const before = motor.position;
  await elapse(100);
  expect(motor.position).toEqual(before);
};

describe('ptz_move', () => {
  it('moves at the speed that was asked for and stops automatically', async () => {
    const it = await servedLab();
    const moving = it.command('ptz_move', { direction: 'left', speed: 40 });
    await eventually('it moves', () => it.camera.camera.motor.isMoving);
    expect(await moving).toMatchObject({ direction: 'left', speed: 40 });
    expect(it.camera.camera.speeds).toEqual([40]);
    expect(it.camera.camera.motor.position.x).toBeLessThan(0);
    await standsStill(it);
  });

  it('stops when the task is cancelled', async () => {
    const it = await servedLab();
    const cancel = new AbortController();
    const moving = it.command('ptz_move', { direction: 'up', speed: 1 }, { signal: cancel.signal });
    await eventually('it moves', () => it.camera.camera.motor.isMoving);
    cancel.abort();
    await moving;
    await standsStill(it);
  });

  it('stops when the connector is stopped, and the session is given back', async () => {
    const it = await servedLab();
    const moving = it.command('ptz_move', { direction: 'right' });
    await eventually('it moves', () => it.camera.camera.motor.isMoving);
    await it.hub.stop();
    await moving;
    await standsStill(it);
    expect(it.camera.sessions.open).toBe(0);
  });

  it('stops although a poll hangs', async () => {
    const it = await servedLab();
    const cancel = new AbortController();
    const moving = it.command('ptz_move', { direction: 'up' }, { signal: cancel.signal });
    await eventually('it moves', () => it.camera.camera.motor.isMoving);
    it.camera.mood = 'hangs';
    const before = it.camera.requests;
    await eventually('a poll hangs', () => it.camera.requests > before);
    it.camera.mood = 'well';
    cancel.abort();
    await moving;
    await standsStill(it);
  });

  it('sends Stop again when the first was refused, and only then is done', async () => {
    const it = await servedLab();
    const moving = it.command('ptz_move', { direction: 'down' });
    await eventually('it moves', () => it.camera.camera.motor.isMoving);
    it.camera.errors.set('PtzCtrl', { code: -13, times: 2 });
    await moving;
    expect(it.camera.camera.motor.stops).toBe(1);
    await standsStill(it);
  });

  it('owes the Stop when the camera was lost, and pays as soon as it is back, before all else, also after a restart', async () => {
    const it = await servedLab();
    const moving = it.command('ptz_move', { direction: 'down' }).catch((error: unknown) => error);
    await eventually('it moves', () => it.camera.camera.motor.isMoving);
    await it.camera.lose();
    expect(String(await moving)).toMatch(/may still be moving/u);
    expect(it.camera.camera.motor.isMoving).toBe(true);
    await it.hub.stop();
    await it.camera.start();
    const before = it.camera.asked.length;
    await it.restart();
    await eventually('it was stopped', () => !it.camera.camera.motor.isMoving);
    const first = it.camera.asked.slice(before).find(({ cmd }) => cmd !== 'Login');
    expect(first).toMatchObject({ cmd: 'PtzCtrl', param: { op: 'Stop' } });
    await standsStill(it);
  });

  it('is stopped later, too, when the camera refused every Stop and was never lost', async () => {
    const it = await servedLab();
    const moving = it.command('ptz_move', { direction: 'down' }).catch((error: unknown) => error);
    await eventually('it moves', () => it.camera.camera.motor.isMoving);
    it.camera.errors.set('PtzCtrl', { code: -13, times: 8 });
    expect(String(await moving)).toMatch(/may still be moving/u);
    await eventually('it was stopped', () => !it.camera.camera.motor.isMoving);
    await standsStill(it);
    expect(it.hub.outbox.drafts.filter((draft) => draft.data?.['status'] === 'offline')).toEqual([]);
  });

  it.each(['cuts off', 'too short', 'garbage', 'bad gateway'] as const)(
    'is never sent twice, and stops what may have been heard, when its answer %s',
    async (mood) => {
      const it = await servedLab();
      it.camera.mood = mood;
      const moving = it.command('ptz_move', { direction: 'left' }).catch((error: unknown) => error);
      await eventually('it was told', () => it.camera.camera.speeds.length === 1);
      it.camera.mood = 'well';
      expect(await moving).toBeInstanceOf(CommandRefused);
      expect(it.camera.camera.speeds).toHaveLength(1);
      await standsStill(it);
    },
  );

  it('does nothing when it was cancelled before its turn', async () => {
    const it = await servedLab();
    const signal = AbortSignal.abort();
    await expect(it.command('ptz_move', { direction: 'left' }, { signal })).rejects.toThrow(
      /command not sent/u,
    );
    expect(it.camera.camera.speeds).toEqual([]);
  });

  it('leaves the speed out for a motor with one speed', async () => {
    const it = await servedLab({ firmware: { ptzType: 5 } });
    expect(await it.command('ptz_move', { direction: 'left', speed: 9 })).toMatchObject({ speed: null });
    expect(it.camera.camera.speeds).toEqual([null]);
  });

  it.each([-1, 0, 65, 1.5])('refuses speed %s', async (speed) => {
    const it = await servedLab();
    await expect(it.command('ptz_move', { direction: 'left', speed })).rejects.toThrow(/speed/u);
  });

  it('is not offered without a motor', async () => {
    const it = await servedLab({ firmware: { ptzType: 0 } });
    expect(it.offered()).toEqual(['set_motion_detection', 'reboot']);
  });
});

describe('ptz_preset', () => {
  it.each([0, 1] as const)('goes to a preset of a camera that counts from %s', async (firstPreset) => {
    const it = await servedLab({ firmware: { firstPreset } });
    expect(await it.command('ptz_preset', { preset_id: firstPreset })).toEqual({
      preset_id: firstPreset,
      name: 'Door',
    });
    expect(it.camera.camera.motor.position.x).toBe(100 + firstPreset);
  });

  it('refuses an unknown or unset preset and names those that there are', async () => {
    const it = await servedLab();
    for (const preset_id of [0, 3, 64]) {
      await expect(it.command('ptz_preset', { preset_id })).rejects.toThrow(/it has 1 \(Door\), 2 \(Wall\)/u);
    }
    expect(it.camera.camera.motor.position.x).toBe(0);
  });
});

describe('set_motion_detection', () => {
  it('uses the switch of old firmware', async () => {
    const it = await servedLab({ firmware: { scheduleVersion: 0, motionSwitch: 'honoured' } });
    const zone = it.camera.camera.zone.table;
    expect(await it.command('set_motion_detection', { enabled: false })).toEqual({
      enabled: false,
      method: 'switch',
    });
    expect(it.camera.camera.enable).toBe(0);
    expect(await it.command('set_motion_detection', { enabled: true })).toEqual({
      enabled: true,
      method: 'switch',
    });
    expect(it.camera.camera).toMatchObject({ enable: 1, zone: { table: zone } });
  });

  it.each([
    { scheduleVersion: 1, motionSwitch: 'missing' },
    { scheduleVersion: 0, motionSwitch: 'ignored' },
    { scheduleVersion: 0, motionSwitch: 'missing', zone: 'missing' },
  ] as const)('empties the zone and restores it exactly, also after a restart, with %o', async (firmware) => {
    const it = await servedLab({ firmware });
    const before = it.camera.camera.zone.table;
    expect(await it.command('set_motion_detection', { enabled: false })).toMatchObject({ method: 'zone' });
    expect(it.camera.camera.zone.table).toMatch(/^0{80}$/u);
    await it.command('set_motion_detection', { enabled: false });
    await it.restart();
    await it.online();
    await it.command('set_motion_detection', { enabled: true });
    expect(it.camera.camera.zone.table).toBe(before);
  });

  it('keeps a zone that another client has drawn meanwhile', async () => {
    const it = await servedLab();
    await it.command('set_motion_detection', { enabled: false });
    it.camera.camera.zone = { ...it.camera.camera.zone, table: '01'.repeat(40) };
    await it.command('set_motion_detection', { enabled: true });
    expect(it.camera.camera.zone.table).toBe('01'.repeat(40));
  });

  it('invents no zone', async () => {
    const it = await servedLab();
    it.camera.camera.zone = { ...it.camera.camera.zone, table: '0'.repeat(80) };
    await expect(it.command('set_motion_detection', { enabled: true })).rejects.toThrow(/draw a zone/u);
    expect(it.camera.camera.zone.table).toMatch(/^0+$/u);
  });

  it('refuses to restore a zone of another grid', async () => {
    const it = await servedLab();
    await it.command('set_motion_detection', { enabled: false });
    it.camera.camera.zone = { cols: 4, rows: 2, table: '0'.repeat(8) };
    await expect(it.command('set_motion_detection', { enabled: true })).rejects.toThrow(
      /detection grid of the camera has changed/u,
    );
  });

  it('fails honestly when the firmware accepts the change and ignores it', async () => {
    const it = await servedLab({ firmware: { zone: 'ignored' } });
    await expect(it.command('set_motion_detection', { enabled: false })).rejects.toThrow(/did not apply it/u);
  });

  it('fails honestly when the firmware has no way at all', async () => {
    const it = await servedLab({ firmware: { zone: 'missing', scheduleVersion: 1 } });
    await expect(it.command('set_motion_detection', { enabled: false })).rejects.toThrow(/offers no way/u);
  });
});

describe('reboot', () => {
  it.each(['restarts', 'restarts unanswered'] as const)(
    'is done when the device is back, whose order was heard and which %s',
    async (effect) => {
      const it = await servedLab();
      it.camera.rebootEffect = effect;
      expect(await it.command('reboot')).toHaveProperty('back_after_s');
      expect(it.camera.count('Reboot')).toBe(1);
      const reasons = it.hub.outbox.drafts.filter((draft) => draft.data?.['status'] === 'offline');
      expect(reasons.map((draft) => draft.data?.['reason'])).toContain(texts.rebooting);
    },
  );

  it('fails when the device continues as before', async () => {
    const it = await servedLab({ limits: { reboot_leaves_ms: 600 } });
    it.camera.rebootEffect = 'nothing';
    await expect(it.command('reboot')).rejects.toThrow(/did not restart/u);
  });

  it('fails with the remedy when the user may not do it', async () => {
    const it = await servedLab();
    it.camera.errors.set('Reboot', { code: -26, times: 1 });
    await expect(it.command('reboot')).rejects.toThrow(/use an administrator/u);
  });

  it('is not offered to a user who may not do it', async () => {
    const lab = await runningLab();
    lab.camera.isAdmin = false;
    lab.start();
    await lab.online();
    expect(lab.offered()).not.toContain('reboot');
  });
});
