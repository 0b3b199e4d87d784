/** What the console shows of the past: charts, interruptions, the activity, the way of a drone, completeness; and what it says without history. */
import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { channels } from '../../../src/contract/topics.ts';
import {
  faultsOf,
  ids,
  page_kit_id,
  type PageLab,
  type PageLabOptions,
} from '../../support/service/page-lab.ts';
import { more_ids, playMore } from '../../support/service/page-kit.ts';
import { playPast } from '../../support/service/page-past.ts';
import { pageScene } from '../../support/service/page-scene.ts';
import { word } from '../../support/service/page-words.ts';
import { peerMissing } from '../../support/peers.ts';

/** The page asks for new events this often. */
const poll_ms = 15_000;

describe.skipIf(peerMissing('chromium-headless-shell'))('The history in the console', () => {
  const { show } = pageScene();

  const open = async (
    path: string,
    { width_px = 390, ...options }: PageLabOptions = {},
  ): Promise<PageLab> => {
    const lab = await show({ width_px, hasHistory: true, ...options });
    await playMore(lab.lab);
    await playPast(lab.lab);
    await lab.page.goto(`${lab.url}/#/k/${page_kit_id}${path}`);
    return lab;
  };

  it('shows latency, availability and interruptions of links with their cause', async () => {
    const { page, complaints } = await open('/links', { width_px: 1280 });
    await page.locator('#latency svg.plot .l0 path').first().waitFor();
    // The text of the chart has its size at every width, and the interruption is hatched.
    const high = await page
      .locator('#latency svg.plot text')
      .first()
      .evaluate((text) => text.getBoundingClientRect().height);
    expect(high).toBeGreaterThan(12);
    await page.locator('#latency svg.plot rect.off').waitFor();
    const row = page.locator('#interruptions .event');
    await row.waitFor();
    expect(await row.innerText()).toContain('no satellite');
    expect(await row.innerText()).toContain('1 h 00 min');
    const cells = page.locator('#availability .strip-row').first().locator('.strip rect');
    const kinds = await cells.evaluateAll((all) => all.map((cell) => cell.getAttribute('class')));
    // 96 cells of 15 minutes: 60 minutes without an answer, 8 hours observed of 24.
    expect(kinds.filter((kind) => kind === 'none').length).toBeGreaterThanOrEqual(3);
    expect(kinds.filter((kind) => kind === 'unknown').length).toBeGreaterThan(55);
    expect(kinds.filter((kind) => kind === 'all').length).toBeGreaterThan(20);
    // One hour of eight without an answer.
    expect(await page.locator('#availability .strip-row .pc').first().innerText()).toMatch(/^8[67]/u);
    await page.locator('#completeness .state.good', { hasText: word('history.isComplete') }).waitFor();
    expect(await faultsOf(page)).toEqual([]);
    expect(complaints).toEqual([]);
  });

  it('reads the values of a moment out, locks commands meanwhile, and returns to now', async () => {
    const { page } = await open(`/a/${ids.drone}`, { width_px: 1280 });
    const slider = page.locator('.scrub input');
    await slider.waitFor();
    await page.locator('.track polyline').first().waitFor({ state: 'attached' });
    await slider.focus();
    for (let i = 0; i < 30; i += 1) await page.keyboard.press('ArrowLeft');
    await page.locator('.past').waitFor();
    expect(await page.locator('.past-mark').count()).toBe(1);
    // 150 minutes ago: not the values of now, 40 m and 71 %, nor a mode, which was reported later.
    const panel = page.locator('.instruments');
    await panel.getByText(word('history.moment')).waitFor();
    const then = Object.fromEntries(
      await panel
        .locator('.fact')
        .evaluateAll((all) => all.map((fact) => [...fact.children].map((part) => part.textContent))),
    ) as Readonly<Record<string, string>>;
    expect(Object.keys(then)).toEqual([
      word('history.moment'),
      word('drone.altitude'),
      word('drone.speed'),
      word('drone.batteryTerm'),
      word('drone.voltage'),
    ]);
    expect(Number.parseFloat(then[word('drone.altitude')] ?? '')).toBeGreaterThan(75);
    expect(then[word('drone.batteryTerm')]).toMatch(/^6[678]%$/u);
    expect(await page.locator('#pre-arm').count()).toBe(0);
    expect(await page.locator('#map > .map-tag').first().innerText()).toMatch(/\d\d:\d\d$/u);
    expect(await page.locator('.chart .cursor').count()).toBe(2);
    expect(await slider.getAttribute('aria-valuetext')).toMatch(/\d\d:\d\d/u);
    await page.locator('.command-row button', { hasText: 'Beep' }).click();
    await page.locator('form.command').getByText(word('history.locked')).waitFor();
    await page.keyboard.press('Escape');
    expect(await faultsOf(page)).toEqual([]);
    await page.locator('.past button').click();
    await page.locator('.past').waitFor({ state: 'detached' });
    expect(await page.locator('.past-mark').count()).toBe(0);
    await panel.getByText('GUIDED').waitFor();
  });

  it('sends a drone home at one press while a moment of the past is shown, and returns to now', async () => {
    const { page, lab } = await open(`/a/${ids.drone}`, { width_px: 1280 });
    const id = '51000000-0000-5000-8000-000000000000';
    const home = { id, name: 'return_home', description: '', risk_level: 'low', requires_approval: false };
    await lab.publish(channels.commands(ids.drone), {
      revision: 3,
      commands: [{ ...home, input_schema: {} }],
    });
    const slider = page.locator('.scrub input');
    await slider.focus();
    for (let i = 0; i < 30; i += 1) await page.keyboard.press('ArrowLeft');
    await page.locator('.past').waitFor();
    await page.locator('.tray.only-wide button:not(.only-phone)').click();
    await page.locator('.past').waitFor({ state: 'detached' });
    await eventually('it is sent', () => lab.dispatched.length === 1);
    expect(lab.dispatched).toMatchObject([{ command_name: 'return_home' }]);
  });

  it('shows the course of a drone, and a lane for each thing that a camera saw', async () => {
    const lab = await open(`/a/${ids.drone}`);
    await eventually('two charts', async () => (await lab.page.locator('#history svg.plot').count()) === 2);
    await lab.page.goto(`${lab.url}/#/k/${page_kit_id}/a/${more_ids.camera}`);
    const lane = lab.page.locator('#history .lane');
    await lane.first().waitFor();
    const people = lab.page.getByRole('img', { name: /^People: /u });
    expect(await people.locator('.seen').count()).toBeGreaterThanOrEqual(8);
    await lab.page.goto(`${lab.url}/#/k/${page_kit_id}/a/${more_ids.gateway}`);
    await eventually('two charts', async () => (await lab.page.locator('#history svg.plot').count()) === 2);
  });

  it('lists events with filters, loads older pages, and saves all of them as CSV', async () => {
    const lab = await open('/activity', { prepare: async (page) => page.clock.install() });
    const { page } = lab;
    await page.locator('.event', { hasText: 'no satellite' }).waitFor();
    await page.locator('#log .day').first().waitFor();
    await page.locator('.chip', { hasText: word('activity.kind.link') }).click();
    await eventually(
      'only the two edges of the link',
      async () => (await page.locator('#log .event').count()) === 2,
    );
    await page.locator('.chip', { hasText: 'Detections' }).click();
    await eventually(
      'only detections',
      async () => (await page.locator('.event', { hasText: 'no satellite' }).count()) === 0,
    );
    await page.locator('.event', { hasText: 'Gate camera: People' }).first().waitFor();
    // The end of a detection is no row.
    const rows = await page.locator('#log .event').count();
    expect(rows).toBe(9 + 1);
    for (let i = 0; i < 130; i += 1)
      await lab.lab.publish(
        channels.event(ids.camera, 'motion'),
        { detected: true, timestamp: new Date().toISOString() },
        { said_ms: Date.now() - 3_600_000 + i * 1_000 },
      );
    await page.clock.runFor(poll_ms);
    await page.locator('.btn.more').waitFor();
    await page.locator('.btn.more').click();
    await eventually(
      'all are listed',
      async () => (await page.locator('#log .event').count()) === rows + 130,
    );
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: word('activity.save') }).click(),
    ]);
    const lines = (await readFile(await download.path(), 'utf8')).trim().split('\r\n');
    expect(lines).toHaveLength(1 + rows + 130);
    await page.locator('.asset-filter').selectOption(more_ids.camera);
    await eventually(
      'only those of the camera',
      async () => (await page.locator('#log .event').count()) === rows - 1,
    );
    expect(await faultsOf(page)).toEqual([]);
  }, 90_000);

  it('names what is missing and why', async () => {
    const lab = await open('/links');
    await lab.lab.publish(channels.telemetry, { battery: 50 }, { skipped: 7 });
    await lab.page.reload();
    await lab.page.locator('#completeness .state.warn').waitFor();
    expect(await lab.page.locator('#completeness').innerText()).toContain(word('history.unexplained'));
  });

  it('reports that the service keeps no history, or is older, and shows what the page saw', async () => {
    const lab = await show({ width_px: 390 });
    await lab.page.goto(`${lab.url}/#/k/${page_kit_id}/links`);
    await lab.page.getByText(word('history.off')).waitFor();
    expect(await lab.page.locator('#availability .strip').count()).toBe(3);
    expect(await lab.page.locator('#completeness').count()).toBe(0);
    await lab.page.route(/\/completeness(?:#|$)/u, async (route) =>
      route.fulfill({ status: 404, json: { title: 'Not found' } }),
    );
    await lab.page.reload();
    await lab.page.getByText(word('history.missing')).waitFor();
    await lab.page.unroute(/\/completeness(?:#|$)/u);
    await lab.page.route(/\/completeness(?:#|$)/u, async (route) => route.abort());
    await lab.page.reload();
    await lab.page.getByText(word('history.failed')).waitFor();
    await lab.page.goto(`${lab.url}/#/k/${page_kit_id}/activity`);
    await lab.page.locator('#log').waitFor();
  });
});
