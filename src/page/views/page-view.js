/** The frame of the page around the screen: rail, bar, tabs, open sheets, the question before a risky command. */
import { t } from '../words/words.js';
import { html } from './parts/html.js';
import { chooser, question, register, screenOf } from './screens.js';
import { barView } from './shell/bar-view.js';
import { loginView } from './shell/login-view.js';
import { railView, tabsView } from './shell/nav.js';

/** @import { Lazy } from './parts/lazy.js' */
/** @import { View } from '../types.d.ts' */

/** @param {View} view */
export function pageView(view) {
  const { choices, world, route } = view;
  if (choices.needsKey)
    return frame(view, {
      heading: { title: t.login.heading },
      body: html`<div class="page">${loginView(view)}</div>`,
    });
  const isKnown = route.screen === 'kits' ? choices.session !== null : world.kit !== null;
  const waiting = {
    heading: { title: t.hero.waiting, isKit: true },
    body: html`<div class="page">
      <p class="empty" role="status">${choices.trouble || t.hero.waiting}</p>
    </div>`,
  };
  return frame(view, (isKnown ? screenOf(view) : undefined) ?? waiting);
}

/**
 * @param {View} view
 * @param {import('./screens.js').Shown} content
 */
function frame(view, { heading, body }) {
  const { choices, link, route } = view;
  const hasTabs = !choices.needsKey && route.screen !== 'asset';
  return html`<div
      class=${['app', link.state === 'lost' ? 'is-lost' : '', choices.needsKey ? 'alone' : ''].join(' ')}
    >
      ${!choices.needsKey && railView(view)} ${barView(view, heading)}
      <main>${body}</main>
      ${hasTabs && tabsView(view)}
    </div>
    ${choices.sheet === 'kits' && shown(chooser, view)}
    ${choices.sheet === 'register' && shown(register, view)} ${choices.confirming && shown(question, view)}`;
}

/**
 * @param {Lazy<(view: View) => unknown>} part
 * @param {View} view
 */
function shown(part, view) {
  part.load(view.act);
  return part.now()?.(view);
}
