/** Starts the page and draws it: at once after a touch, else at most four times a second, and every second for the ages. */
import { makeActions } from './actions.js';
import { assetsView } from './assets-view.js';
import { barView } from './bar-view.js';
import { lockReason } from './command-view.js';
import { Confirm } from './confirm.js';
import { html } from './html.js';
import { integratorView } from './integrator-view.js';
import { attentionView, kitView, linksView, queueView } from './kit-view.js';
import { loginView } from './login-view.js';
import { mapView } from './map-view.js';
import { render } from './preact.js';
import { Session } from './session.js';
import { tasksView } from './tasks-view.js';

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
// What stands there until the modules have come is not part of what is drawn.
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
