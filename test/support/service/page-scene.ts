/** What each file of tests of the page begins with: a browser, and for each test a page with its kit. */
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll } from 'vitest';
import { openPage, type PageLab, type PageLabOptions, startBrowser } from './page-lab.ts';

/** To be called where tests are described: pages are closed after each test, the browser after all. */
export function pageScene(options: { readonly hasWebGl?: boolean } = {}): {
  readonly show: (options?: PageLabOptions) => Promise<PageLab>;
  readonly openDrone: (lab: Pick<PageLab, 'page'>) => Promise<void>;
  /** Opens the sheet of a command of the asset that is shown, and returns its form. */
  readonly openCommand: (lab: Pick<PageLab, 'page'>, title: string) => Promise<Locator>;
  /** A page of somebody else in the same browser. */
  readonly newPage: () => Promise<Page>;
} {
  let browser: Browser;
  let open: PageLab | undefined;
  beforeAll(async () => {
    browser = await startBrowser(options);
  });
  afterEach(async () => {
    await open?.stop();
    open = undefined;
  });
  afterAll(async () => browser.close());
  return {
    async show(about) {
      open = await openPage(browser, about);
      await open.page.locator('.page-link', { hasText: 'Live' }).waitFor();
      return open;
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
