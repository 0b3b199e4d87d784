/** The page in Debian's Chromium, on the real service, with a kit that the test plays. */
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { channels } from '../../../src/contract/topics.ts';
import { loadPage } from '../../../src/cloud/http/page/page-files.ts';
import { eventually } from '../../support/eventually.ts';
import { announce, contrastFaults, faultsOf, fly, ids, page_kit_id } from '../../support/service/page-lab.ts';
import { pageScene } from '../../support/service/page-scene.ts';
import { word } from '../../support/service/page-words.ts';
import { peerMissing } from '../../support/peers.ts';

/** Compressed, everything that the first view needs. */
const first_view_bytes_max = 70_000;
const withClock = async (page: Page): Promise<void> => page.clock.install();

describe.skipIf(peerMissing('chromium-headless-shell'))('the page', () => {
  const { show, again, openDrone, openCommand, newPage } = pageScene();

  it('is readable in the sun, and asks nobody else for anything', async () => {
    const lab = await again();
    await openDrone(lab);
    expect(await contrastFaults(lab.page)).toEqual([]);
    expect([lab.complaints, lab.strangers]).toEqual([[], []]);
  });

  it('gives every control 44 pixels, and commands 48', async () => {
    const lab = await again();
    await openDrone(lab);
    const small = await lab.page.evaluate(() =>
      [
        ...document.querySelectorAll(
          'button, select, textarea, summary, label.radio, input[type=text], .tabs a',
        ),
      ]
        .filter((control) => control.checkVisibility())
        .filter(
          (control) => control.getBoundingClientRect().height < (control.matches('.btn, .radio') ? 48 : 44),
        )
        .map((control) => control.outerHTML.slice(0, 120)),
    );
    expect(small).toEqual([]);
  });

  it('needs less than 70 kB for its first view', async () => {
    const { index, files } = await loadPage();
    const first = index.bodies.identity.toString();
    let bytes = index.bodies.gzip.length;
    for (const [name, { bodies }] of files) if (first.includes(`/${name}"`)) bytes += bodies.gzip.length;
    expect(bytes).toBeLessThan(first_view_bytes_max);
    expect(bytes).toBeGreaterThan(10_000);
  });

  it('keeps the key out of the address', async () => {
    const { page } = await again();
    expect(page.url()).not.toContain('key');
  });

  it('shows names as text, whatever they hold', async () => {
    const lab = await again();
    const name = '<img src=x onerror="document.title=`broken`">\u202Egpj.exe';
    await announce(lab.lab, ids.silent, { name, type: '<b>drone</b>', model: '<script>1</script>' });
    await lab.page.locator('.asset-row', { hasText: 'onerror' }).waitFor();
    const text = await lab.page.locator('.assets').innerText();
    expect(text).toContain('<img src=x onerror=');
    expect(text).not.toContain('\u202E');
    expect(await lab.page.locator('#page img, #page script').count()).toBe(0);
    expect(await lab.page.title()).toMatch(/^(?:\(\d+\) )?Overview – Kit Seven$/u);
    expect(lab.complaints).toEqual([]);
  });

  it('marks an asset that is online and does not deliver everything, and shows why on its page', async () => {
    const lab = await again();
    const reason = 'Maximum number of pull points reached';
    const next_try_at = new Date(Date.now() + 900_000).toISOString();
    const health = {
      events: { state: 'fails', reason, next_try_at },
      stream: { state: 'not_offered', reason: 'RTSP is switched off', next_try_at: null },
    };
    await announce(lab.lab, ids.silent, { name: 'Gate', type: 'camera', health });
    const row = lab.page.locator('.asset-row', { hasText: 'Gate' });
    await row.locator('.state', { hasText: word('state.degraded') }).waitFor();
    expect(await row.innerText()).toContain(word('health.missing.events'));
    await row.click();
    const box = lab.page.locator('.notice', { hasText: word('state.degraded') });
    await box.waitFor();
    expect(await box.innerText()).toContain(reason);
    expect(await lab.page.locator('#about').innerText()).toContain('RTSP is switched off');
    expect(await faultsOf(lab.page)).toEqual([]);
    expect(lab.complaints).toEqual([]);
  });

  it('draws the latency of a link while it watches, with a gap where there was no answer', async () => {
    const { page, lab } = await again();
    const link = { name: 'eth3', type: 'satellite', status: 'online' };
    for (const latency_ms of [40, 90, null, 60, 50]) {
      await lab.publish(channels.telemetry, { wans: [{ ...link, latency_ms }] });
      if (latency_ms !== null) await page.locator('#links').getByText(`${latency_ms}\u00a0ms`).waitFor();
      else
        await eventually(
          'the link has no latency',
          async () => !/\d ms/u.test(await page.locator('#links .ms b').innerText()),
        );
    }
    const line = page.getByRole('img', { name: 'Latency while this page was open, 40 to 90 ms' });
    expect(await line.locator('path.l').getAttribute('d')).toMatch(/^M[\d. ]+(?:L[\d. ]+)+M[\d. ]+L/u);
  });

  it('shows new values automatically, and marks old ones alike in list, detail and map', async () => {
    const lab = await again();
    await openDrone(lab);
    // A feed is old after three of its usual intervals, at least 6 s; the first interval is as long as the page took to open.
    for (let step = -34; step < 6; step += 1) {
      await fly(lab.lab, step);
    }
    await eventually('the last fix stands in the detail', async () =>
      (await lab.page.locator('#about .place').innerText()).startsWith('47.392250'),
    );
    /** Of one drawing. */
    const olds = async (): Promise<readonly boolean[]> =>
      lab.page.evaluate(() => {
        const altitude = [...document.querySelectorAll('.instruments .fact')].find((fact) =>
          fact.textContent.startsWith('Altitude'),
        );
        return [
          altitude?.matches('.is-old') === true,
          document.querySelector('#about .is-old .place') !== null,
          document.querySelector('.map .mark.old[aria-label="Drone 1"]') !== null,
        ];
      });
    let drawn = await olds();
    expect(drawn).toEqual([false, false, false]);
    await eventually('the position is old', async () => (drawn = await olds()).includes(true));
    expect(drawn).toEqual([true, true, true]);
    await fly(lab.lab, 9);
    await eventually('the position is new', async () => (drawn = await olds()).includes(false));
    expect(drawn).toEqual([false, false, false]);
  });

  it('comes back after its socket was cut', async () => {
    const { page, link, lab } = await again();
    const { accepted } = link.counters;
    link.cut();
    await eventually('there is a new socket', () => link.counters.accepted > accepted);
    await fly(lab, 5);
    await openDrone({ page });
    await eventually('news arrive', async () =>
      (await page.locator('#about .place').innerText()).startsWith('47.392250'),
    );
  });

  it('sends a harmless command at one tap, and follows its task in the row of the command', async () => {
    const lab = await again();
    const { page } = lab;
    await openDrone(lab);
    const form = await openCommand(lab, 'Beep');
    await form.getByRole('button', { name: 'Beep' }).click();
    await form.getByText(word('task.waiting')).waitFor();
    const [order] = lab.lab.dispatched;
    expect(order).toMatchObject({ asset_id: ids.drone, command_name: 'beep', payload: {} });
    const task_id = order?.task_id ?? '';
    const report = { task_id, asset_id: ids.drone, command_name: 'beep', result: {} };
    const progress = { message: '<i>half</i> way', pct: 50 };
    await lab.lab.publish(channels.task(task_id), { ...report, status: 'running', revision: 1, progress });
    await form.getByText('<i>half</i> way 50 %').waitFor();
    const result = { error: 'compass <b>broken</b>' };
    await lab.lab.publish(channels.task(task_id), { ...report, status: 'failed', revision: 2, result });
    await form.getByText('compass <b>broken</b>').waitFor();
    await page.keyboard.press('Escape');
    expect(await page.locator('#tasks').getByText('compass <b>broken</b>').count()).toBe(1);
  });

  it('asks before a medium risk; the first answer is Cancel, and a double tap confirms nothing', async () => {
    const lab = await again();
    const { page } = lab;
    await openDrone(lab);
    const form = await openCommand(lab, 'Set mode');
    await form.getByRole('button').click();
    await form.getByText(word('form.chooseOne')).waitFor();
    await form.getByLabel('RTL').check();
    const dialog = page.getByRole('dialog', { name: /Set mode: Drone 1/u });
    const confirm = dialog.getByRole('button', { name: 'Set mode' });
    // In the moment in which the question appears, however busy the machine is.
    await page.evaluate(() => {
      new MutationObserver((_, observer) => {
        const button = document.querySelector<HTMLElement>('dialog[open] .answers .main');
        if (!button) return;
        observer.disconnect();
        button.click();
        button.click();
        document.body.dataset['tapped'] = 'twice';
      }).observe(document.body, { childList: true, subtree: true, attributes: true });
    });
    await form.getByRole('button').click();
    await dialog.getByText('RTL').waitFor();
    await page.locator('body[data-tapped]').waitFor();
    await page.keyboard.press('Escape');
    await form.getByText(word('order.cancelled')).waitFor();
    expect(lab.lab.dispatched).toEqual([]);
    await form.getByRole('button').click();
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe(word('cancel'));
    await eventually('the answer is taken', async () => {
      if ((await dialog.count()) > 0) await confirm.click({ timeout: 500 }).catch(() => undefined);
      return lab.lab.dispatched.length > 0;
    });
    expect(lab.lab.dispatched).toMatchObject([{ command_name: 'set_mode', payload: { mode: 'RTL' } }]);
  });

  it('requires a high risk to be held down, and takes the typed name from a keyboard', async () => {
    const lab = await again({ width_px: 1_280 });
    const { page } = lab;
    await openDrone(lab);
    const form = await openCommand(lab, 'Fly to a point');
    const send = form.getByRole('button', { name: /^Fly to a point/u });
    await form.getByRole('button', { name: word('form.kitPosition') }).click();
    await form.getByLabel(/^Altitude/u).fill('500');
    await send.click();
    await form.locator('b.fault').waitFor();
    await form.getByLabel(/^Altitude/u).fill('60');
    await send.click();
    const hold = page.locator('button.hold');
    await hold.hover();
    await eventually('a short press starts', async () => {
      await page.mouse.down();
      return (await page.getByText(word('hold.keep')).count()) > 0;
    });
    await page.mouse.up();
    await page.getByText(word('hold.toConfirm')).waitFor();
    expect(lab.lab.dispatched).toEqual([]);
    expect(await faultsOf(page)).toEqual([]);
    await page.mouse.down();
    await eventually('it is sent', () => lab.lab.dispatched.length === 1);
    await page.mouse.up();
    await send.click();
    await page.locator('form.typed input').pressSequentially('Drone 1');
    await eventually('the name is taken', async () => {
      await page.keyboard.press('Enter');
      return lab.lab.dispatched.length === 2;
    });
    const payload = { lat: 47.39, lon: 8.54, alt_m: 60 };
    expect(lab.lab.dispatched).toMatchObject([{ payload }, { payload }]);
  });

  it('shows why an order was refused, never sends one again, and admits when its fate is unknown', async () => {
    const lab = await again();
    const { page } = lab;
    await openDrone(lab);
    const form = await openCommand(lab, 'Beep');
    let sent = 0;
    const problem = {
      detail: 'the payload breaks the <b>schema</b>',
      errors: [{ pointer: '#/payload/lat', detail: 'too far' }],
    };
    await page.route('**/commands/beep', async (route) => {
      sent += 1;
      if (sent > 1) await route.abort();
      else
        await route.fulfill({
          status: 422,
          contentType: 'application/problem+json',
          body: JSON.stringify(problem),
        });
    });
    await form.getByRole('button').click();
    await form.getByText('Not sent: the payload breaks the <b>schema</b> (lat: too far)').waitFor();
    await form.getByRole('button').click();
    await form.getByText(word('order.unknown')).waitFor();
    await lab.page.waitForTimeout(1_500);
    expect([sent, lab.lab.dispatched.length]).toEqual([2, 0]);
    await page.unroute('**/commands/beep');
  });

  it('asks for a key when there is none, reports what is wrong with one, and works by keyboard alone', async () => {
    const lab = await again();
    const stranger = await newPage();
    try {
      await stranger.goto(lab.url);
      await stranger.getByLabel(/key of this kit/u).fill('kc_wrong');
      await stranger.keyboard.press('Enter');
      await stranger.getByText('send a valid key').waitFor();
      await stranger.getByLabel(/key of this kit/u).fill(lab.lab.key);
      await stranger.keyboard.press('Enter');
      await stranger.locator('.asset-row', { hasText: 'Drone 1' }).focus();
      await stranger.keyboard.press('Enter');
      await stranger.locator('#commands').waitFor();
      expect(stranger.url()).toBe(`${lab.url}/#/k/${page_kit_id}/a/${ids.drone}`);
    } finally {
      await stranger.context().close();
    }
  });

  it('takes a payload as JSON where the schema says more than a form can', async () => {
    const lab = await again();
    await openDrone(lab);
    const form = await openCommand(lab, 'Upload');
    await form.getByRole('textbox').fill('{"a":');
    await form.getByRole('button').click();
    await form.getByText(word('form.notJson')).waitFor();
    await form.getByRole('textbox').fill('{"a":1}');
    await form.getByRole('button').click();
    await eventually('it is sent', () => lab.lab.dispatched.length === 1);
    await lab.lab.publish(channels.commands(ids.drone), { revision: 2, commands: [] });
    await lab.page.getByText(word('commands.none')).waitFor();
  });

  it('asks for the key again when it was revoked, and shows nothing of the kit any more', async () => {
    const lab = await again();
    await lab.lab.revoke(lab.key);
    lab.link.cut();
    await lab.page.locator('.page-link', { hasText: word('state.loggedOut') }).waitFor();
    await lab.page.getByLabel(/key of this kit/u).waitFor();
    expect(await lab.page.getByText('Drone 1').count()).toBe(0);
  });

  it('says within 6 s that its own link is dead, locks commands, keeps what was typed, and comes back silently', async () => {
    const lab = await again({ prepare: withClock });
    const { page, link } = lab;
    await openDrone(lab);
    const form = await openCommand(lab, 'Fly to a point');
    await form.getByLabel(/^Altitude/u).fill('35,5');
    link.stall();
    await page.clock.pauseAt((await page.evaluate(() => Date.now())) + 2_000);
    await page.clock.runFor(4_000);
    expect(await page.locator('.page-link').innerText()).toContain(word('state.lost'));
    await page.clock.resume();
    await page.locator('.notice', { hasText: word('lost.title') }).waitFor({ state: 'attached' });
    await form.getByText(word('lock.noLink')).waitFor();
    await form.getByRole('button', { name: /Fly to a point/u }).click({ force: true });
    await fly(lab.lab, 7);
    link.resume();
    await page.locator('.page-link', { hasText: word('state.online') }).waitFor();
    await eventually('the new snapshot is shown', async () =>
      (await page.locator('#about .place').innerText()).startsWith('47.392350'),
    );
    expect(await form.getByLabel(/^Altitude/u).inputValue()).toBe('35,5');
    expect(lab.lab.dispatched).toEqual([]);
  });

  it('withdraws a question without an answer', async () => {
    const lab = await again({ prepare: withClock });
    await openDrone(lab);
    const form = await openCommand(lab, 'Set mode');
    await form.getByLabel('LAND').check();
    await form.getByRole('button').click();
    await lab.page.getByRole('dialog', { name: /Drone 1/u }).waitFor();
    await lab.page.clock.fastForward(10_500);
    await form.getByText(word('order.expired')).waitFor();
    expect(lab.lab.dispatched).toEqual([]);
  });

  it('locks commands for a key that may only read', async () => {
    const lab = await show({ scopes: ['read'] });
    await openDrone(lab);
    await lab.page.getByText(word('lock.readOnly')).first().waitFor();
    const form = await openCommand(lab, 'Beep');
    expect(await form.getByRole('button', { name: 'Beep' }).getAttribute('aria-disabled')).toBe('true');
  });
});
