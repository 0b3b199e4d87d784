/** Starts the page and draws it: at once after input, otherwise at most four times a second, and every second for the ages. */
import { makeActions } from './world/actions.js';
import { assetsView } from './views/assets-view.js';
import { barView } from './views/bar-view.js';
import { lockReason } from './views/command-view.js';
import { Confirm } from './views/confirm.js';
import { html } from './views/html.js';
import { integratorView } from './views/integrator-view.js';
import { attentionView, kitView, linksView, queueView } from './views/kit-view.js';
import { loginView } from './views/login-view.js';
import { mapView } from './views/map-view.js';
import { render } from './preact.js';
import { Session } from './world/session.js';
import { tasksView } from './views/tasks-view.js';

/** @import { Choices, View } from './types.d.ts' */

const draw_every_ms = 250;
const tick_ms = 1_000;

/** @type {Choices} */
const choices = {
  kits: [],
  kit_id: null,
  session: null,
  needsKey: undefined,
  trouble: '',
  filter: 'all',
  open_asset: null,
  typed: new Map(),
  orders: new Map(),
  confirming: null,
  video_asset: null,
  map: { zoom: 0, center: null },
  events: [],
  frames: [],
};

const root = document.querySelector('#page');
// Removes the placeholder that is shown until the modules are loaded.
root?.replaceChildren();
let drawn_ms = -draw_every_ms;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

const session = new Session(choices, drawSoon);
const act = makeActions({ choices, session, changed: draw });

function drawSoon() {
  timer ??= setTimeout(
    () => requestAnimationFrame(draw),
    Math.max(0, drawn_ms + draw_every_ms - performance.now()),
  );
}

function draw() {
  clearTimeout(timer);
  timer = undefined;
  drawn_ms = performance.now();
  if (root) render(page({ ...session.now(), choices, act }), root);
}

/** @param {View} view */
function page(view) {
  const { needsKey, confirming, trouble } = choices;
  const isKnown = view.world.kit !== null && !needsKey;
  return html`
    ${barView(view)}
    <main>
      ${needsKey && loginView(view)}
      ${!needsKey && !isKnown && html`<p class="trouble" role="status">${trouble || 'Waiting for the kit'}</p>`}
      ${
        isKnown &&
        html`<div class="column">
            ${attentionView(view)} ${kitView(view)} ${linksView(view)} ${queueView(view)} ${assetsView(view)}
          </div>
          <div class="column">${mapView(view)} ${tasksView(view)} ${integratorView(view)}</div>`
      }
    </main>
    ${
      confirming &&
      html`<${Confirm}
        key=${confirming.command.id}
        order=${confirming}
        locked=${lockReason(view)}
        onConfirm=${() => void act.send(confirming)}
        onCancel=${(/** @type {string} */ reason) => act.withdraw(confirming, reason)}
      />`
    }
  `;
}

draw();
void session.start();
setInterval(draw, tick_ms);
