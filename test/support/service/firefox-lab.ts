/** The page in Firefox, on the real service, for the main paths in a second browser engine. Everything else is tested in Chromium (`page-lab.ts`). */
import { type Browser, launch, type Page } from 'puppeteer-core';
import { program } from '../peers.ts';
import { type Proxy, startProxy } from '../brokers/proxy.ts';
import { page_kit_id, playKit } from './page-lab.ts';
import type { ServiceOptions } from '../../../src/cloud/start.ts';
import { type ServiceLab, startServiceLab } from './service-lab.ts';

export interface FirefoxLab {
  readonly lab: ServiceLab;
  /** Between the browser and the service; a test can silence it. */
  readonly link: Proxy;
  readonly page: Page;
  readonly url: string;
  /** Exceptions and errors that the browser printed, violations of the content policy among them. */
  readonly complaints: readonly string[];
  /** Resolves when the text of the page holds `text`. */
  see(text: string): Promise<void>;
  /** Goes to a screen of the kit, such as `/links`. */
  visit(path: string): Promise<void>;
  /** Goes to a screen of all kits, such as `alarms`. */
  visitFleet(screen: string): Promise<void>;
  stop(): Promise<void>;
}

export interface FirefoxOptions {
  readonly width_px?: number;
  readonly hasHistory?: boolean;
  /** The service keeps contents of files. */
  readonly files?: ServiceOptions['files'];
}

const shows_within_ms = 60_000;

/** Starts Debian's Firefox with a fresh profile; puppeteer speaks WebDriver BiDi with it. */
export async function startFirefox(): Promise<Browser> {
  return launch({
    browser: 'firefox',
    executablePath: program('firefox-esr'),
    headless: true,
    timeout: 90_000,
    protocolTimeout: 90_000,
  });
}

/** Opens the page, logged in, at the kit. */
export async function openInFirefox(
  browser: Browser,
  { width_px = 390, hasHistory = false, files }: FirefoxOptions = {},
): Promise<FirefoxLab> {
  const lab = await startServiceLab(page_kit_id, { hasHistory, files });
  const link = await startProxy(Number(new URL(lab.url).port));
  const url = `http://127.0.0.1:${link.port}`;
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  page.setDefaultTimeout(shows_within_ms);
  await page.setViewport({ width: width_px, height: 844 });
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  const key = await lab.giveKey({ kits: [page_kit_id] });
  await playKit(lab);
  await page.goto(`${url}/#key=${encodeURIComponent(key)}`);
  const see = async (text: string): Promise<void> => {
    await page.waitForFunction((wanted) => document.body.textContent.includes(wanted), {}, text);
  };
  return {
    lab,
    link,
    page,
    url,
    complaints,
    see,
    async visit(path) {
      await page.goto(`${url}/#/k/${page_kit_id}${path}`);
    },
    async visitFleet(screen) {
      await page.goto(`${url}/#/${screen}`);
    },
    async stop() {
      await context.close();
      await link.close();
      await lab.stop();
    },
  };
}
