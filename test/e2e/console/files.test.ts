/** Files on the page: lists of kit and drone that follow the frames, orders, and pictures that open large, also from alarms and activity. */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Page } from 'playwright-core';
import { channels } from '../../../src/contract/topics.ts';
import { samplePicture } from '../../../src/toolkit/device/pictures/sample-picture.ts';
import { samples } from '../../support/contract-samples.ts';
import { peerMissing } from '../../support/peers.ts';
import { file_ids, more_ids, playFiles, playMore } from '../../support/service/page-kit.ts';
import { faultsOf, ids, page_kit_id, type PageLab } from '../../support/service/page-lab.ts';
import { pageScene } from '../../support/service/page-scene.ts';
import { word } from '../../support/service/page-words.ts';
import { makeDirectory } from '../../support/temporary.ts';

describe.skipIf(peerMissing('chromium-headless-shell'))('Files on the page', () => {
  const { show } = pageScene();
  let dir: string;
  beforeEach(async () => {
    dir = await makeDirectory();
  });
  afterEach(async () => rm(dir, { recursive: true }));

  const open = async (width_px: number, about: { readonly scopes?: readonly string[] } = {}) => {
    const settings = { dir, url: 'https://kits.example.com', bytes_max: 1e9, days: { default: 90 } };
    const files = { settings, send: async () => undefined };
    return show({ width_px, hasHistory: true, files, ...about });
  };
  const rowOf = (page: Page, name: string) => page.locator('.file', { hasText: name });
  /** The picture comes whole. */
  const bring = async ({ lab }: PageLab): Promise<void> => {
    await mkdir(join(dir, page_kit_id), { recursive: true });
    await writeFile(join(dir, page_kit_id, file_ids.alarm), samplePicture());
    const place = { kit_id: page_kit_id, file_id: file_ids.alarm };
    lab.changes.publish([await lab.store.fileStored(place, Date.now())]);
  };

  it('are listed with their states, requested, and followed by frames', async () => {
    const scene = await open(390);
    const { page, lab, url } = scene;
    await playMore(lab);
    await page.goto(`${url}/#/k/${page_kit_id}/files`);
    await page.getByText(word('files.none.kit')).waitFor();
    await playFiles(lab, new Date().toISOString());
    await rowOf(page, '00000043.BIN').getByText('42').waitFor();
    await rowOf(page, '00000041.BIN').getByText('the space for files was used up').waitFor();
    const waiting = rowOf(page, '00000042.BIN');
    await waiting.getByText('the link sends files on order only').waitFor();
    expect(await faultsOf(page)).toEqual([]);
    await waiting.getByRole('button', { name: word('files.request') }).click();
    await waiting.getByText(word('files.requested')).waitFor();
    await bring(scene);
    const link = rowOf(page, 'gate').getByRole('link');
    const [download] = await Promise.all([page.waitForEvent('download'), link.click()]);
    expect(download.suggestedFilename()).toContain('.jpg');
    await page.goto(`${url}/#/k/${page_kit_id}/a/${ids.drone}`);
    await rowOf(page, '00000042.BIN').waitFor();
    expect(await rowOf(page, 'gate').count()).toBe(0);
    expect(scene.complaints).toEqual([]);
  });

  it('give no order with a key that may only read', async () => {
    const { page, lab, url } = await open(390, { scopes: ['read'] });
    await playFiles(lab, new Date().toISOString());
    await page.goto(`${url}/#/k/${page_kit_id}/files`);
    await rowOf(page, '00000042.BIN').waitFor();
    expect(await page.getByRole('button', { name: word('files.request') }).count()).toBe(0);
  });

  it('show the still of an alarm in the inbox and the activity, attached when it comes, and large', async () => {
    const scene = await open(390);
    const { page, lab, url } = scene;
    await playMore(lab);
    const timestamp = new Date().toISOString();
    const detection = { ...samples['vendorcamAiDetection'], detected: false };
    await lab.publish(channels.event(more_ids.camera, 'ai_detection'), detection);
    await lab.publish(channels.event(more_ids.camera, 'ai_detection'), {
      ...detection,
      detected: true,
      timestamp,
    });
    await page.goto(`${url}/#/alarms`);
    await page.locator('.alarm').first().waitFor();
    expect(await page.locator('.alarm .thumb').count()).toBe(0);
    await playFiles(lab, timestamp);
    await page.locator('.alarm .thumb').click();
    await page.locator('dialog.large figcaption', { hasText: 'Gate camera' }).waitFor();
    await bring(scene);
    await page.locator(`dialog.large img[src*="${file_ids.alarm}/content"]`).waitFor();
    expect(
      await page
        .locator('dialog.large img')
        .evaluate((img: HTMLImageElement) => img.decode().then(() => img.naturalWidth)),
    ).toBeGreaterThan(0);
    expect(await faultsOf(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await page.locator('dialog').waitFor({ state: 'detached' });
    await page.goto(`${url}/#/k/${page_kit_id}/activity`);
    await page.locator('#log .with-picture .thumb').first().click();
    await page.locator('dialog.large img').waitFor();
    expect(scene.complaints).toEqual([]);
  });
});
