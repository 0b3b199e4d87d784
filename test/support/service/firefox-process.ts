/**
 * Firefox in the network that this process is in: `node firefox-process.ts CONSOLE CAMERA`, two addresses. Prints what stands over the picture once
 * it plays or is refused.
 */
import { argv, exit } from 'node:process';
import { startFirefox } from './firefox-lab.ts';

const shows_within_ms = 120_000;
const [console_url = '', camera_url = ''] = argv.slice(2);
const browser = await startFirefox();
try {
  const page = await browser.newPage();
  page.setDefaultTimeout(shows_within_ms);
  await page.goto(console_url);
  await page.waitForSelector('.asset-row');
  await page.goto(camera_url);
  await page.waitForFunction(() =>
    /Live|No video/u.test(document.querySelector('.video p')?.textContent ?? ''),
  );
  const shown = await page.evaluate(() => ({
    text: document.querySelector('.video p')?.textContent,
    width: document.querySelector('video')?.videoWidth,
  }));
  console.log(JSON.stringify(shown));
  await page.goto(console_url);
} finally {
  await browser.close();
}
exit(0);
