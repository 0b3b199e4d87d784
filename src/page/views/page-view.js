/** The frame of the page around the screen: rail, bar, tabs, open sheets, the question before a risky command. */
import { t } from '../words/words.js';
import { lockReason } from './command/about.js';
import { html } from './parts/html.js';
import { confirm, register, screenOf } from './screens.js';
import { barView } from './shell/bar-view.js';
import { kitChooser } from './shell/kit-chooser.js';
import { loginView } from './shell/login-view.js';
import { railView, tabsView } from './shell/nav.js';

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
 * @param {import('./screens.js').Shown} shown
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
    ${choices.sheet === 'kits' && kitChooser(view)} ${choices.sheet === 'register' && registerSheet(view)}
    ${question(view)}`;
}

/** @param {View} view */
function registerSheet(view) {
  register.load(view.act);
  return register.now()?.(view);
}

/** @param {View} view */
function question(view) {
  const { confirming } = view.choices;
  if (!confirming) return '';
  confirm.load(view.act);
  const Confirm = confirm.now();
  return (
    Confirm &&
    html`<${Confirm}
      key=${`${confirming.asset.id} ${confirming.command.name}`}
      order=${confirming}
      locked=${lockReason(view, confirming.asset)}
      onConfirm=${() => void view.act.send(confirming)}
      onCancel=${(/** @type {string} */ reason) => view.act.withdraw(confirming, reason)}
    />`
  );
}
