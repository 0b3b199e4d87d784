/** The list of kits: a thousand of them on one socket, worst first; search, reconnecting, and marks of what is old. */
import { describe, expect, it } from 'vitest';
import type { Page } from 'playwright-core';
import { channels } from '../../../src/contract/topics.ts';
import { fileOf } from '../../../src/cloud/http/page/page-files.ts';
import { bundledPage } from '../../support/service/bundled-page.ts';
import { samples } from '../../support/contract-samples.ts';
import { eventually } from '../../support/eventually.ts';
import { kitIds, openKits } from '../../support/service/page-fleet.ts';
import { faultsOf } from '../../support/service/page-lab.ts';
import { pageScene } from '../../support/service/page-scene.ts';
import { word } from '../../support/service/page-words.ts';
import { peerMissing } from '../../support/peers.ts';

/** What the page lets pass: before it calls its list old, and before it asks again where it has no socket. */
const old_ms = 30_000;
const poll_ms = 10_000;

describe.skipIf(peerMissing('chromium-headless-shell'))('The list of kits', () => {
  const { show } = pageScene();

  it('shows 1,000 kits with few elements', async () => {
    const lab = await openKits(await show({ width_px: 320 }), 1_000);
    const { page } = lab;
    await page.locator('.kit-list').waitFor();
    await eventually(
      'all are counted',
      async () => (await page.locator('.chip .n').first().innerText()) === '1,000',
    );
    expect(await page.locator('.kit-item').count()).toBeLessThan(60);
    // The list is as high as all of its rows.
    const high = await page.locator('.kit-list').evaluate((list) => list.getBoundingClientRect().height);
    const row = await page
      .locator('.kit-item')
      .first()
      .evaluate((item) => item.getBoundingClientRect().height);
    expect(Math.abs(high / row - 1_000)).toBeLessThan(1);
    expect(await faultsOf(page)).toEqual([]);
    const overhang = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(overhang).toBeLessThanOrEqual(0);
    await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
    await page.locator('.kit-item[aria-posinset="1000"]').waitFor();
    expect(await page.locator('.kit-item').count()).toBeLessThan(60);
    expect(lab.complaints).toEqual([]);
  }, 120_000);

  it('shows on a map where the kits are; a mark of several opens to them', async () => {
    const lab = await openKits(await show({ width_px: 1_280 }), 6);
    const { page } = lab;
    const kits = kitIds(6);
    const report = async (kit: string | undefined, latitude: number): Promise<void> => {
      const { kitTelemetry } = samples;
      const location = { ...(kitTelemetry?.['location'] as object), latitude };
      await lab.lab.publish(channels.telemetry, { ...kitTelemetry, location }, { kit: kit ?? '' });
    };
    await report(kits[4], 60);
    await report(kits[5], 65);
    await page.getByRole('button', { name: word('kits.show.map') }).click();
    const marks = page.locator('.fleet-map a');
    await eventually('two kits stand alone', async () => (await marks.count()) === 3);
    await eventually('the land is drawn', async () =>
      ((await page.locator('.fleet-map .land').first().getAttribute('d')) ?? '').startsWith('M'),
    );
    expect(await faultsOf(page)).toEqual([]);
    await page.locator('.fleet-map .cluster').click();
    await page.locator('.fleet-map .together a', { hasText: 'Kit 2' }).waitFor();
    await page.locator('.fleet-map a[aria-label^="Kit 5"]').click();
    await eventually('its overview opens', () => page.url().includes(`/k/${kits[5]}`));
    expect(lab.complaints).toEqual([]);
  });

  it('has the worst first, finds by name, and is used with the keyboard', async () => {
    const lab = await openKits(await show({ width_px: 390 }), 40);
    const { page } = lab;
    await page.locator('.kit-list').waitFor();
    const words = async (): Promise<readonly string[]> => page.locator('.kit-item .state').allInnerTexts();
    await eventually('their states are sorted', async () => {
      const order = ['Offline', 'Attention', 'No report yet', 'Online'];
      const ranks = (await words()).map((text) => order.indexOf(text));
      return ranks.length >= 20 && ranks.every((rank, i) => i === 0 || rank >= (ranks[i - 1] ?? 0));
    });
    expect((await words())[0]).toBe('Offline');
    const names = await page.locator('.kit-item .nm b').allInnerTexts();
    expect(names.slice(0, 4)).toEqual(['Kit 0', 'Kit 4', 'Kit 8', 'Kit 12']);
    await page.getByRole('searchbox').fill('kit 7');
    await eventually('one is found', async () => (await page.locator('.kit-item').count()) === 1);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await eventually('its overview is open', async () => page.url().endsWith(`/k/${kitIds(8)[7] ?? ''}`));
  });

  it('has 25 rows on a laptop, ordered by the column that is chosen, and a log of all kits', async () => {
    const lab = await openKits(await show({ width_px: 1_280, hasHistory: true }), 40);
    const { page } = lab;
    const head = page.locator('.kit-head button', { hasText: word('kits.column.name') });
    await head.click();
    const names = page.locator('.kit-item .nm b');
    await eventually(
      'they are in the order of names',
      async () => (await names.nth(1).innerText()) === 'Kit 1',
    );
    await head.click();
    await eventually('the other way round', async () => (await names.first().innerText()) === 'Kit 39');
    const long = 'Rescue post Säntis, summit station north 14';
    await lab.lab.publish(
      channels.state,
      { ...samples['kitState'], name: long },
      { kit: kitIds(40)[39] ?? '' },
    );
    const whole = page.locator('.kit-item .nm b', { hasText: long });
    await whole.waitFor();
    expect(
      await whole.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth),
    ).toBeLessThanOrEqual(0);
    const ends = await page
      .locator('.kit-item')
      .evaluateAll((all) => all.map((each) => each.getBoundingClientRect().bottom));
    expect(ends[24]).toBeLessThanOrEqual(800);
    expect(await page.title()).toContain(word('nav.kits'));
    await page.locator('.fleet-nav a', { hasText: word('nav.log') }).click();
    await page.locator('#log .event', { hasText: 'Kit 38' }).waitFor();
    expect(await faultsOf(page)).toEqual([]);
    await page.locator('#log .event', { hasText: 'Kit 38' }).click();
    await eventually('its page names it', async () => (await page.title()).endsWith('Kit 38'));
    expect(lab.complaints).toEqual([]);
  });

  it('takes alarms: acknowledged, noted on, muted; the tab counts those that nobody has taken', async () => {
    const lab = await openKits(await show({ width_px: 390 }), 6);
    const { page } = lab;
    await page.locator('.tabs a', { hasText: word('nav.alarms') }).click();
    const rows = page.locator('.alarm');
    // Two kits are offline, one has little battery.
    await eventually('all are there', async () => (await rows.count()) === 3);
    await eventually('the tab counts them', async () => (await page.title()).startsWith('(3) '));
    expect(await page.locator('link[rel="icon"]').getAttribute('href')).toContain('%3E3%3C');
    const row = rows.filter({ hasText: 'Kit 1' });
    await row.getByRole('button', { name: word('alarms.note') }).click();
    await row.getByRole('textbox').fill('Spare battery is on its way');
    await row.getByRole('button', { name: word('alarms.save') }).click();
    await row.getByText('Spare battery is on its way').waitFor();
    await row.getByRole('button', { name: word('alarms.acknowledge') }).click();
    await eventually('it is not open', async () => (await rows.count()) === 2);
    await rows.filter({ hasText: 'Kit 4' }).getByRole('combobox').selectOption('8');
    await eventually('one is left', async () => (await page.title()).startsWith('(1) '));
    expect(await faultsOf(page)).toEqual([]);
    await page.locator('.chip', { hasText: word('alarms.state.acknowledged') }).click();
    await rows.filter({ hasText: 'Kit 1' }).getByText('acknowledged by test').waitFor();
    await lab.lab.publish(channels.telemetry, { battery: 80 }, { kit: kitIds(6)[1] ?? '' });
    await eventually('it ends by itself', async () => (await rows.count()) === 0);
    expect(lab.complaints).toEqual([]);
  });

  it('manages webhooks, retention and erasures without a shell', async () => {
    const hook = {
      id: kitIds(1)[0],
      label: 'Ops',
      url: 'https://ops.example.org',
      status: 'enabled',
      counts: { delivered: 7, waiting: 0, dead: 2 },
    };
    const dead = { id: 'msg_1', type: 'alarm', kit_id: kitIds(1)[0], reason: 'answered 500' };
    const sent: string[] = [];
    const prepare = async (page: Page): Promise<void> => {
      await page.route('**/api/webhooks**', async (route) => {
        const request = route.request();
        const path = new URL(request.url()).pathname;
        if (request.method() !== 'GET') sent.push(`${request.method()} ${path.split('/').at(-1)}`);
        await route.fulfill({ json: path.endsWith('dead') ? { messages: [dead] } : { webhooks: [hook] } });
      });
    };
    const lab = await show({ width_px: 390, hasHistory: true, prepare });
    const { page } = lab;
    await page.goto(`${lab.url}/#/manage`);
    await page.getByRole('button', { name: '2 given up' }).click();
    await page.getByText('answered 500').waitFor();
    await page.getByRole('button', { name: word('manage.replay') }).click();
    await eventually('they are sent again', () => sent.includes('POST replay'));
    await page.getByRole('button', { name: word('manage.remove') }).click();
    await page.getByRole('button', { name: word('manage.sure') }).click();
    await eventually('it is deleted', () => sent.some((each) => each.startsWith('DELETE')));
    await page.locator('input[type="datetime-local"]').fill('2026-01-01T00:00');
    await page.getByRole('button', { name: word('manage.erase'), exact: true }).click();
    await page.getByRole('button', { name: word('manage.sure') }).click();
    await page.getByText(word('manage.wholeKit')).waitFor();
    expect(await page.locator('#retention input').first().inputValue()).toBe('30');
    await page.locator('#kit-label input').first().fill('North ridge');
    await page.locator('#kit-label input').last().fill('alps, rescue');
    await page.locator('#kit-label button').click();
    await page.goto(`${lab.url}/#/kits`);
    const row = page.locator('.kit-item', { hasText: 'North ridge' });
    await row.locator('.tag').last().waitFor();
    expect(await row.locator('.tag').allInnerTexts()).toEqual(['alps', 'rescue']);
    await page.locator('.chip', { hasText: 'rescue' }).click();
    await row.waitFor();
    expect(await faultsOf(page)).toEqual([]);
    expect(lab.complaints).toEqual([]);
  });

  it('makes, changes, rotates and revokes keys, whose secrets are shown once', async () => {
    const prepare = async (page: Page): Promise<void> => {
      await page.route('**/api/webhooks', async (route) => route.fulfill({ json: { webhooks: [] } }));
    };
    const lab = await openKits(await show({ width_px: 390, hasHistory: true, prepare }), 3);
    const { page } = lab;
    await page.goto(`${lab.url}/#/manage`);
    const card = page.locator('#keys');
    await card.locator('summary').click();
    await card.getByLabel(word('manage.label')).fill('Wall');
    await card.getByLabel(word('keys.scope.alarms')).check();
    await card.getByLabel(word('keys.kitsOfOwn')).uncheck();
    await card.getByLabel('Kit 1').check();
    // What was typed stays when the page is drawn again.
    for (const colorScheme of ['dark', 'light'] as const) await page.emulateMedia({ colorScheme });
    await card.locator('form button').click();
    const row = card.locator('.rows > li', { hasText: 'Wall' });
    const secret = row.locator('.secret input');
    const first = await secret.inputValue();
    await row.getByText('Kit 1: read, alarms').waitFor();
    const statusOf = async (key: string): Promise<number> => {
      const { status } = await fetch(`${lab.url}/api/kits`, { headers: { 'x-api-key': key } });
      return status;
    };
    expect(await statusOf(first)).toBe(200);
    expect(await faultsOf(page)).toEqual([]);
    await row.getByText(word('keys.change')).click();
    await row.getByLabel('Kit 2').check();
    await row.locator('form button').click();
    await row.getByText('2 kits: read, alarms').waitFor();
    for (const name of [word('keys.rotate'), word('manage.sure')])
      await row.getByRole('button', { name }).click();
    await eventually('another secret is shown', async () => (await secret.inputValue()) !== first);
    expect(await statusOf(await secret.inputValue())).toBe(200);
    for (const name of [word('keys.revoke'), word('manage.sure')])
      await row.getByRole('button', { name }).click();
    await row.waitFor({ state: 'detached' });
    expect(await statusOf(first)).toBe(401);
    // The own key has no button that would lock this person out.
    expect(await card.getByRole('button', { name: word('keys.revoke') }).count()).toBe(
      (await card.locator('.rows > li').count()) - 1,
    );
    expect(lab.complaints).toEqual([]);
  });

  it('follows changes on the socket, reports when the list is not current, and is whole again afterwards', async () => {
    const prepare = async (page: Page): Promise<void> => page.clock.install();
    const lab = await openKits(await show({ width_px: 390, prepare }), 12);
    const { page, link } = lab;
    const one = kitIds(12)[3] ?? '';
    const row = page.locator('.kit-item', { hasText: 'Kit 3' });
    await row.locator('.state.good').waitFor();
    await lab.lab.publish(channels.telemetry, { battery: 7, battery_charging: false }, { kit: one });
    await row.locator('.state', { hasText: word('state.attention') }).waitFor();
    link.stall();
    await page.locator('.page-link', { hasText: word('state.lost') }).waitFor();
    await page.clock.runFor(old_ms);
    await page.getByText(word('kits.listOld')).waitFor();
    expect(await page.locator('.kit-item .state.good').count()).toBe(0);
    expect(await page.locator('.kit-item .age.old').count()).toBeGreaterThan(0);
    // With its position, which is old by now.
    await lab.lab.publish(channels.telemetry, { ...samples['kitTelemetry'], battery: 70 }, { kit: one });
    link.resume();
    await row.locator('.state.good').waitFor({ timeout: 60_000 });
    await page.getByText(word('kits.listOld')).waitFor({ state: 'detached' });
  }, 150_000);

  it('asks over HTTP where the service has no socket for many kits', async () => {
    const lab = await show({
      width_px: 390,
      prepare: async (page) => {
        await page.clock.install();
        await page.routeWebSocket(/\/api\/ws$/u, (socket) => void socket.close());
      },
    });
    await openKits(lab, 12);
    const row = lab.page.locator('.kit-item', { hasText: 'Kit 3' });
    await row.locator('.state.good').waitFor();
    const telemetry = { battery: 7, battery_charging: false };
    await lab.lab.publish(channels.telemetry, telemetry, { kit: kitIds(12)[3] ?? '' });
    await lab.page.clock.runFor(poll_ms);
    await row.locator('.state', { hasText: word('state.attention') }).waitFor();
    expect(await lab.page.getByText(word('kits.listOld')).count()).toBe(0);
  }, 90_000);

  it('is loaded anew in a tab from before an upgrade, once a screen needs a file that is gone (lightdash/lightdash#24685)', async () => {
    const before = await (await bundledPage())();
    const [old, next] = [`/page/${before.version}/`, '/page/next/'];
    const text = before.index.bodies.identity.toString().replaceAll(old, next);
    const after = { ...before, version: 'next', index: await fileOf('text/html; charset=utf-8', text) };
    let isUpgraded = false;
    const { page } = await show({
      source: async () => (isUpgraded ? after : before),
      // What the first screen needs is there; this is gone before it is fetched in idle time.
      prepare: async (tab) => {
        await tab.route(`**${old}fleet-screen.js`, async (route) => route.fulfill({ status: 404 }));
      },
    });
    let loads = 0;
    page.on('load', () => (loads += 1));
    isUpgraded = true;
    await page.evaluate(() => (location.hash = '#/kits'));
    await page.locator(`script[src^="${next}"]`).waitFor({ state: 'attached' });
    await page.locator('.kit-list').waitFor();
    expect(loads).toBe(1);
  });
});
