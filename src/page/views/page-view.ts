/** The frame of the page around the screen: rail, bar, tabs, open sheets, the question before a risky command. */
import { t } from '../words/words.ts';
import { html } from './parts/html.ts';
import { chooser, question, register, screenOf, type Shown } from './screens.ts';
import { barView } from './shell/bar-view.ts';
import { loginView } from './shell/login-view.ts';
import { railView, tabsView } from './shell/nav.ts';
import type { Lazy } from './parts/lazy.ts';
import type { View } from '../types.d.ts';

export function pageView(view: View) {
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

function frame(view: View, { heading, body }: Shown) {
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

function shown(part: Lazy<(view: View) => unknown>, view: View) {
  part.load(view.act);
  return part.now()?.(view);
}
