/** Starts the page and draws it: at once after input and until it shows live values, otherwise at most four times a second, and every second for the ages. */
import { render } from 'preact';
import { makeActions } from './world/actions.ts';
import { elapsed_ms } from './world/elapsed.ts';
import { History } from './world/history/history.ts';
import { Fleet } from './world/kits.ts';
import { Log } from './world/history/log.ts';
import { readRoute } from './world/route.ts';
import { Session } from './world/session.ts';
import { languageNow, readSettings, settings, themeNow } from './settings.ts';
import { useLanguage } from './words/words.ts';
import { attentionList } from './views/attention.ts';
import { html } from './views/parts/html.ts';
import { symbols } from './views/parts/icon.ts';
import { pageView, fetchScreens } from './views/page-view.ts';
import { openAlarms, tabTitle } from './views/shell/nav.ts';
import { pressKey } from './views/shell/shortcuts.ts';
import { markTab } from './views/shell/tab.ts';
import { Alarms } from './world/alarms.ts';
import type { Alarm, Choices } from './types.d.ts';

const draw_every_ms = 250;
const tick_ms = 1_000;
/** After the first screen has its data. */
const fetch_rest_after_ms = 3_000;

const choices: Choices = {
  kits: [],
  kits_ms: elapsed_ms(),
  kit_id: null,
  session: null,
  needsKey: undefined,
  trouble: '',
  filter: 'all',
  log_filter: 'all',
  kit_filter: 'all',
  kit_sort: { by: 'state', isDown: false },
  kit_view: 'list',
  alarms: [],
  alarm_filter: 'open',
  alarm_fault: '',
  file_fault: '',
  aligned: '',
  together: [],
  search: '',
  sheet: null,
  target: null,
  hours: 24,
  moment_ms: null,
  older: null,
  log_asset: '',
  typed: new Map(),
  orders: new Map(),
  confirming: null,
  metadata: new Map(),
  registering: '',
  map: { zoom: 0, center: null, pan: null },
  events: [],
  frames: [],
};

readSettings();
const root = document.querySelector('#page');
// Removes the placeholder that is shown until the modules are loaded.
root?.replaceChildren();
const sprite = document.createElement('div');
document.body.append(sprite);
render(symbols(), sprite);

/** Until when a finger or mouse that is down may be a tap; longer presses hold something, and values continue. The click follows the release. */
let pressed_until_ms = 0;
for (const [event, ms] of [
  ['pointerdown', 600],
  ['pointerup', 100],
  ['click', 0],
] as const)
  addEventListener(event, () => (pressed_until_ms = performance.now() + ms), true);

let drawn_ms = -draw_every_ms;
/** Live values have been drawn. */
let isShown = false;
let timer: ReturnType<typeof setTimeout> | undefined;
let route = readRoute(location.hash);

const log = new Log();
const history = new History(drawSoon);
const session = new Session(choices, { onNews: drawSoon, log });
const fleet = new Fleet(choices, drawSoon);
const alarms = new Alarms(choices, { onNews: drawSoon, onNewAlarm: (alarm) => void announce(alarm) });
const act = makeActions({ choices, session, changed: draw, arrived: drawNews });

/** Two tones for what is critical, one for the rest. */
async function announce({ severity }: Alarm) {
  if (settings.sound === 'off') return;
  const { beep } = await import('./views/parts/sound.ts');
  beep(880);
  if (severity === 'critical') setTimeout(() => beep(660), 250);
}

function drawSoon() {
  const due_ms = isShown ? drawn_ms + draw_every_ms : 0;
  timer ??= setTimeout(() => requestAnimationFrame(drawNews), Math.max(0, due_ms - performance.now()));
}

/** Nothing moves under a finger: what a tap changes is drawn at once, all else after it. */
function drawNews() {
  const wait_ms = pressed_until_ms - performance.now();
  if (wait_ms > 0) timer = setTimeout(drawNews, wait_ms);
  else draw();
}

function draw() {
  clearTimeout(timer);
  timer = undefined;
  drawn_ms = performance.now();
  document.documentElement.dataset['theme'] = themeNow();
  alarms.follow(choices.session !== null && choices.needsKey !== true);
  fleet.follow(choices.session !== null && areKitsShown());
  const view = {
    ...session.now(),
    choices,
    act,
    route,
    log,
    history,
    isListOld: fleet.isOld,
    theme: themeNow(),
  };
  if (view.link.state === 'live') {
    log.follow(attentionList(view), view.time_ms);
    history.prepare(view);
  }
  markTab(tabTitle(view), openAlarms(view));
  if (root) render(html`${pageView(view)}`, root);
  isShown ||= view.link.state === 'live' || fleet.isLive;
}

/** Follows the address: another screen, or another kit. */
function followAddress() {
  const next = readRoute(location.hash);
  const isOther =
    next.screen !== route.screen || next.asset_id !== route.asset_id || next.kit_id !== route.kit_id;
  route = next;
  if (!isOther) return;
  choices.sheet = null;
  choices.target = null;
  choices.file_fault = '';
  choices.moment_ms = null;
  choices.map = { zoom: 0, center: null, pan: null };
  choices.together = [];
  if (next.kit_id !== null && next.kit_id !== choices.kit_id) session.watch(next.kit_id);
  scrollTo(0, 0);
  draw();
}

function areKitsShown() {
  return route.screen === 'kits' || choices.sheet === 'kits';
}

function tick() {
  if (areKitsShown() && !fleet.isLive) void session.refreshKits();
  // A page that is hidden or covered gets no frames, but its log must continue.
  if (performance.now() - drawn_ms >= tick_ms) drawNews();
  else drawSoon();
}

/** Logs in; the address may name another kit afterwards. */
async function start() {
  await session.start();
  route = readRoute(location.hash);
  draw();
}

addEventListener('hashchange', followAddress);
addEventListener('keydown', (event) => pressKey(event, choices.kit_id, act));
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
document.documentElement.lang = languageNow();
if (languageNow() !== 'en') void useLanguage(languageNow()).then(draw);
draw();
void start();
setInterval(tick, tick_ms);
setTimeout(() => fetchScreens(act), fetch_rest_after_ms);
