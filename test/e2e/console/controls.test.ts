/** What moves machines from the console: the pad of a camera, its presets, the tap on the map of a drone, and taps while the screen changes. */
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { channels } from '../../../src/contract/topics.ts';
import { samples } from '../../support/contract-samples.ts';
import { eventually } from '../../support/eventually.ts';
import { fly, ids, page_kit_id, type PageLab } from '../../support/service/page-lab.ts';
import { more_ids, playMore } from '../../support/service/page-kit.ts';
import { pageScene } from '../../support/service/page-scene.ts';
import { word } from '../../support/service/page-words.ts';
import { peerMissing } from '../../support/peers.ts';

describe.skipIf(peerMissing('chromium-headless-shell'))('The controls of the console', () => {
  const { show, again } = pageScene();

  const openCamera = async (): Promise<PageLab> => {
    const lab = await again();
    await playMore(lab.lab);
    await lab.page.goto(`${lab.url}/#/k/${page_kit_id}/a/${more_ids.camera}`);
    await lab.page.locator('.ptz-pad').waitFor();
    return lab;
  };
  const directionsOf = (lab: PageLab): readonly unknown[] =>
    lab.lab.dispatched.map(({ payload }) => (payload as { direction?: unknown }).direction);

  it('move a camera while an arrow is held, and stop it when the pointer is lifted elsewhere', async () => {
    const lab = await openCamera();
    const { page } = lab;
    const box = await page.locator('.ptz-pad').boundingBox();
    const [x, y] = [(box?.x ?? 0) + (box?.width ?? 0) - 22, (box?.y ?? 0) + (box?.height ?? 0) / 2];
    await page.mouse.move(x, y);
    await page.mouse.down();
    await eventually('the move is sent again while it is held', () => directionsOf(lab).length >= 2);
    await page.mouse.move(5, 5);
    await page.mouse.up();
    await eventually('the stop is sent', () => directionsOf(lab).at(-1) === 'stop');
    const sent = directionsOf(lab);
    expect(sent.slice(0, -1).every((direction) => direction === 'right')).toBe(true);
    expect(lab.lab.dispatched[0]).toMatchObject({ payload: { direction: 'right', speed: 32 } });
  });

  it('send the stop after a move that failed, and one stop for the button in the middle', async () => {
    const lab = await openCamera();
    const { page } = lab;
    const asked: unknown[] = [];
    await page.route('**/commands/ptz_move', async (route) => {
      const { payload } = route.request().postDataJSON() as {
        readonly payload: { readonly direction: string };
      };
      asked.push(payload.direction);
      if (payload.direction === 'stop') await route.continue();
      else await route.abort();
    });
    await page.locator('.ptz-pad').focus();
    await page.keyboard.down('ArrowUp');
    // A second key does not take the hold over, and its release does not end it.
    await page.keyboard.down('ArrowLeft');
    await page.keyboard.up('ArrowLeft');
    await page.keyboard.up('ArrowUp');
    await eventually('the stop is sent', () => asked.at(-1) === 'stop');
    expect(asked).toEqual(['up', 'stop']);
    await page.locator('.ptz-stop').click();
    await eventually('the stop of the button is sent', () => asked.length === 3);
    expect(asked).toEqual(['up', 'stop', 'stop']);
    await page.unroute('**/commands/ptz_move');
  });

  it('stop a camera when the window loses the focus', async () => {
    const lab = await openCamera();
    await lab.page.locator('.ptz-pad').focus();
    await lab.page.keyboard.down('ArrowDown');
    await eventually('it moves', () => directionsOf(lab).includes('down'));
    await lab.page.evaluate(() => dispatchEvent(new Event('blur')));
    await eventually('the stop is sent', () => directionsOf(lab).at(-1) === 'stop');
    await lab.page.keyboard.up('ArrowDown');
  });

  it('send a camera to a preset by its name, with the value of the schema', async () => {
    const lab = await openCamera();
    await lab.page.locator('.presets .chip', { hasText: 'Road' }).click();
    await eventually('it is sent', () => lab.lab.dispatched.length === 1);
    expect(lab.lab.dispatched).toMatchObject([{ command_name: 'ptz_preset', payload: { preset_id: 2 } }]);
  });

  it('offer the constants of a schema as choices', async () => {
    const lab = await openCamera();
    await lab.page.goto(`${lab.url}/#/k/${page_kit_id}/a/${more_ids.radio}`);
    await lab.page.locator('.command-row button').first().click();
    const form = lab.page.locator('form.command');
    expect(await form.locator('.radio').allInnerTexts()).toEqual(['10', '20', 'auto']);
    expect(await form.locator('textarea').count()).toBe(0);
  });

  /** A card above the commands appears with this: the drone says why it cannot be armed. */
  const refuseArming = async ({ lab }: PageLab): Promise<void> =>
    lab.publish(channels.feed(ids.drone, 'sys_status'), {
      ...samples['droneSysStatus'],
      pre_arm_check: false,
      pre_arm_reasons: ['Compass not calibrated'],
    });
  const openCommands = async (prepare?: (page: Page) => Promise<void>): Promise<PageLab> => {
    const lab = await (prepare ? show({ prepare }) : again());
    await lab.lab.publish(channels.feed(ids.drone, 'sys_status'), {
      ...samples['droneSysStatus'],
      pre_arm_check: true,
      pre_arm_reasons: [],
    });
    await lab.page.goto(`${lab.url}/#/k/${page_kit_id}/a/${ids.drone}`);
    await lab.page.locator('#commands').waitFor();
    await lab.page.locator('#pre-arm').waitFor({ state: 'detached' });
    return lab;
  };

  it('keep the focus and are the same to a long press when a card comes above them', async () => {
    const lab = await openCommands();
    const button = lab.page.locator('.command-row button').first();
    const pressed = await button.elementHandle();
    await button.focus();
    await button.hover();
    await lab.page.mouse.down();
    await refuseArming(lab);
    await lab.page.locator('#pre-arm').waitFor();
    expect(await pressed?.evaluate((element) => element === document.activeElement)).toBe(true);
    expect(await pressed?.evaluate((element) => element.closest('section')?.id)).toBe('commands');
    await lab.page.mouse.up();
  });

  const whole = { breached: false, breach_count: 0, breach_type: 'none' };
  let revision = 1;
  /** @param fence undefined: nothing was reported of it yet */
  const openDrone = async (
    fence: object | undefined,
    datum: string,
    { width_px = 1_280, tap = 420 } = {},
  ): Promise<PageLab> => {
    const lab = await again({ width_px });
    const input_schema = {
      type: 'object',
      properties: {
        lat: { type: 'number' },
        lon: { type: 'number' },
        alt_m: { type: 'number', minimum: 5, maximum: 120, 'x-kit-datum': datum },
      },
      required: ['lat', 'lon', 'alt_m'],
    };
    const id = '31000000-0000-5000-8000-000000000000';
    const goto = { id, name: 'goto_waypoint', description: '', risk_level: 'high', requires_approval: true };
    revision += 1;
    await lab.lab.publish(channels.commands(ids.drone), {
      revision,
      commands: [{ ...goto, input_schema }],
    });
    if (fence) await lab.lab.publish(channels.feed(ids.drone, 'fence'), fence as never);
    await lab.page.goto(`${lab.url}/#/k/${page_kit_id}/a/${ids.drone}`);
    await lab.page.locator('.fly-hint').waitFor();
    await fly(lab.lab, 1);
    await lab.page.locator('svg.map').click({ position: { x: tap, y: tap } });
    await lab.page.locator('.fly').waitFor();
    return lab;
  };

  it('ask again where the fence is not reported', async () => {
    const lab = await openDrone(undefined, 'relative');
    const { page } = lab;
    expect(await page.locator('.fly').innerText()).toContain(word('fly.fenceUnknown'));
    expect(await page.locator('.fly button.hold').count()).toBe(0);
    await page.locator('.fly .btn.main').click();
    await page.getByRole('dialog').locator('button.hold').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(lab.lab.dispatched).toEqual([]);
  });

  it('fly a drone to a tap after a question and a hold, at its own height above home', async () => {
    const lab = await openDrone(whole, 'relative');
    const { page } = lab;
    // The feed of the driver has no shape.
    expect(await page.locator('.fly').innerText()).toContain(word('fly.fenceUnknown'));
    await page.locator('.fly .btn.main').click();
    const hold = page.getByRole('dialog').locator('button.hold');
    await hold.hover();
    await eventually('a short press starts', async () => {
      await page.mouse.down();
      return (await page.locator('.held').count()) > 0;
    });
    await page.mouse.up();
    await page.locator('.held').waitFor({ state: 'detached' });
    expect(lab.lab.dispatched).toEqual([]);
    await page.mouse.down();
    await eventually('it is sent', () => lab.lab.dispatched.length === 1);
    await page.mouse.up();
    expect(lab.lab.dispatched).toMatchObject([{ command_name: 'goto_waypoint', payload: { alt_m: 40 } }]);
    await page.locator('.fly').waitFor({ state: 'detached' });
  });

  it('answer a tap on a phone in sight, above the commands that stay at the bottom', async () => {
    const { page } = await openDrone(whole, 'relative', { width_px: 320, tap: 90 });
    const box = await page.locator('.fly').boundingBox();
    expect(box?.y).toBeGreaterThan(0);
    expect((box?.y ?? 0) + (box?.height ?? Infinity)).toBeLessThanOrEqual(844);
  });

  it('say that the drone has crossed its fence, and which limit', async () => {
    const { page } = await openDrone(
      { breached: true, breach_count: 1, breach_type: 'max_altitude' },
      'relative',
    );
    expect(await page.locator('.fly [role=alert]').innerText()).toContain(word('fly.breach.max_altitude'));
  });

  it('send nothing where the altitude is not known in the datum of the command', async () => {
    const lab = await openDrone(whole, 'amsl');
    await lab.page.getByText(word('fly.heightNotKnown')).waitFor();
    expect(await lab.page.locator('.fly .btn.main').getAttribute('aria-disabled')).toBe('true');
  });

  it('are hit by a tap although a card comes above them under the finger, which is drawn after it', async () => {
    let received = '';
    const held = Promise.withResolvers<void>();
    const lab = await openCommands(async (page) => {
      await page.clock.install();
      await page.route('**/base-map.js*', async (route) => {
        await held.promise;
        await route.continue();
      });
      page.on('websocket', (socket) =>
        socket.on('framereceived', ({ payload }) => void (received += payload)),
      );
    });
    const { page } = lab;
    await page.clock.pauseAt((await page.evaluate(() => Date.now())) + 20_000);
    await page.locator('.page-link', { hasText: word('state.online') }).waitFor();
    await page.locator('.command-row button').first().hover();
    await page.mouse.down();
    await refuseArming(lab);
    await eventually('the page has received it', () => received.includes('Compass not calibrated'));
    // A module that arrives meanwhile does not draw it either.
    const request = page.waitForEvent('requestfinished', (each) => each.url().includes('base-map.js'));
    held.resolve();
    const url = (await request).url();
    await page.evaluate(`import(${JSON.stringify(url)}).then(() => undefined)`);
    await page.clock.runFor(500);
    expect(await page.locator('#pre-arm').count()).toBe(0);
    await page.mouse.up();
    await page.locator('form.command').waitFor();
    await page.clock.runFor(1_500);
    await page.locator('#pre-arm').waitFor();
  });

  it('stay where they are when the service reports that it keeps no history', async () => {
    const held = Promise.withResolvers<void>();
    const lab = await show({
      prepare: async (page) =>
        void (await page.route('**/completeness*', async (route) => {
          await held.promise;
          await route.continue();
        })),
    });
    const { page } = lab;
    await page.goto(`${lab.url}/#/k/${page_kit_id}/a/${ids.drone}`);
    const button = page.locator('.command-row button').first();
    await button.waitFor();
    const place = await button.boundingBox();
    held.resolve();
    await page.locator('#no-history').waitFor();
    expect(await button.boundingBox()).toEqual(place);
  });

  it('have their places before a screen is opened: the service is asked for its history on the first one', async () => {
    let asked: Promise<unknown> | undefined;
    const { page } = await show({
      hasHistory: true,
      prepare: async (fresh) => void (asked = fresh.waitForResponse('**/completeness*')),
    });
    await asked;
    await page.locator('.asset-row', { hasText: 'Drone 1' }).click();
    await expect(page.locator('.track-bar .chip').first().waitFor()).resolves.toBeUndefined();
  });
});
