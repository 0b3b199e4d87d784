/** What each file of tests of the page begins with: a browser, and for each test a page with its kit. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll } from 'vitest';
import { openPage, type PageLab, type PageLabOptions, startBrowser } from './page-lab.ts';

/** To be called where tests are described: pages are closed after each test, the browser after all. */
export function pageScene(): {
  readonly show: (options?: PageLabOptions) => Promise<PageLab>;
  readonly openDrone: (lab: Pick<PageLab, 'page'>) => Promise<void>;
  /** A page of somebody else in the same browser. */
  readonly newPage: () => Promise<Page>;
} {
  let browser: Browser;
  let open: PageLab | undefined;
  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterEach(async () => {
    await open?.stop();
    open = undefined;
  });
  afterAll(async () => browser.close());
  return {
    async show(options) {
      open = await openPage(browser, options);
      await open.page.getByText('Kit online').waitFor();
      return open;
    },
    async openDrone({ page }) {
      await page.getByRole('button', { name: /^Drone 1/u }).click();
      await page.getByRole('heading', { name: 'Feeds' }).waitFor();
    },
    newPage: async () => browser.newPage(),
  };
}
