/** How the text of the page stands on it. */
import type { Page } from 'playwright-core';

/** Words of the page's own sentences that stand in two lines, each with its whole text. Names and values of devices are left out. */
export async function brokenWords(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const found: string[] = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const element = node.parentElement;
      const text = node.textContent ?? '';
      if (!element?.checkVisibility() || element.closest('bdi, pre, svg, .place, .unseen')) continue;
      for (const { 0: word, index } of text.matchAll(/\p{L}[\p{L}…]+/gu)) {
        const range = document.createRange();
        range.setStart(node, index);
        range.setEnd(node, index + word.length);
        const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)));
        if (lines.size > 1) found.push(`${word} in "${text.slice(0, 60)}"`);
      }
    }
    return found;
  });
}
