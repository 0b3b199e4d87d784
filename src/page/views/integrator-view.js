/** Help for people who write their own client: addresses, examples, last frames and events. */
import { html } from './html.js';
import { section } from './marks.js';
import { plain } from '../world/text.js';

/** @import { View } from '../types.d.ts' */

/** @param {View} view */
export function integratorView({ choices, act, world }) {
  const kit = `${location.origin}/api/kits/${choices.kit_id ?? '{kit_id}'}`;
  const send = JSON.stringify({ payload: {} });
  const [asset] = world.assets.keys();
  const logout = () => void act.logout();
  return section(
    'integrators',
    'For integrators',
    html`<details>
        <summary>Addresses, examples, frames, events</summary>
        <p><a href="/openapi.json">OpenAPI document</a></p>
        <h3>Read</h3>
        <pre tabindex="0">${`curl -H "X-API-Key: $KEY" ${kit}/assets`}</pre>
        <h3>Send a command</h3>
        <pre tabindex="0">
${`curl -X POST -H "X-API-Key: $KEY" -H "Content-Type: application/json" \\\n  -d '${send}' ${kit}/assets/${asset ?? '{asset_id}'}/commands/{command_name}`}</pre>
        <h3>Watch</h3>
        <pre tabindex="0">
${`${kit.replace(/^http/u, 'ws')}/ws   subprotocol kit.v1\n${JSON.stringify({ type: 'subscribe', assets: '*' })}`}</pre>
        <h3>Last frames</h3>
        <pre tabindex="0">${choices.frames.map(plain).join('\n') || 'none'}</pre>
        <h3>Events of this page</h3>
        <pre tabindex="0">${choices.events.map(plain).join('\n') || 'nothing'}</pre>
        ${choices.session && html`<button type="button" onClick=${logout}>Log out</button>`}
      </details>
      ${location.protocol === 'http:' && html`<p>○ Not encrypted: use this page on the kit's own network only.</p>`}`,
  );
}
