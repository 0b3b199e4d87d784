/** What each file of tests of the page begins with: a browser, and for each test a page with its kit. */
import { isDeepStrictEqual } from 'node:util';
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll } from 'vitest';
import { openPage, page_kit_id, type PageLab, type PageLabOptions, startBrowser } from './page-lab.ts';

/** To be called where tests are described: a page is closed before the next is opened and after a test that failed, the browser after all. */
export function pageScene(options: { readonly hasWebGl?: boolean } = {}): {
  readonly show: (options?: PageLabOptions) => Promise<PageLab>;
  /**
   * The page of the test before, at its overview, where that was opened alike: it saves most of the processor time of a test. Else, and
   * after a test that failed, a new one.
   */
  readonly again: (options?: PageLabOptions) => Promise<PageLab>;
  readonly openDrone: (lab: Pick<PageLab, 'page'>) => Promise<void>;
  /** Opens the sheet of a command of the asset that is shown, and returns its form. */
  readonly openCommand: (lab: Pick<PageLab, 'page'>, title: string) => Promise<Locator>;
  /** A page of somebody else in the same browser. */
  readonly newPage: () => Promise<Page>;
} {
  let browser: Browser;
  let open: PageLab | undefined;
  let opened: PageLabOptions = {};
  const close = async (): Promise<void> => {
    await open?.stop();
    open = undefined;
  };
  const live = async (lab: PageLab): Promise<PageLab> => {
    await lab.page.locator('.page-link', { hasText: 'Live' }).waitFor();
    return lab;
  };
  const show = async (about: PageLabOptions = {}): Promise<PageLab> => {
    await close();
    opened = about;
    open = await openPage(browser, about);
    return live(open);
  };
  beforeAll(async () => {
    browser = await startBrowser(options);
  });
  afterEach(async ({ task }) => {
    if (task.result?.state === 'fail') await close();
  });
  afterAll(async () => {
    await close();
    await browser.close();
  });
  return {
    show,
    async again(about = {}) {
      const { width_px = 390, ...others } = about;
      const { width_px: _, ...before } = opened;
      if (!open || !isDeepStrictEqual(others, before)) return show(about);
      open.lab.dispatched.length = 0;
      await open.page.setViewportSize({ width: width_px, height: 844 });
      await open.page.goto(`${open.url}/#/k/${page_kit_id}`);
      return live(open);
    },
    async openDrone({ page }) {
      await page.locator('.asset-row', { hasText: 'Drone 1' }).click();
      await page.locator('#commands').waitFor();
    },
    async openCommand({ page }, title) {
      await page.locator('.command-row button', { hasText: title }).click();
      const form = page.getByRole('form', { name: title });
      await form.waitFor();
      return form;
    },
    newPage: async () => browser.newPage(),
  };
}
