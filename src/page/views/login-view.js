/** Asks for the API key. It is sent to the service once and not stored: the service answers with a cookie. */
import { html } from './html.js';

/** @import { View } from '../types.d.ts' */

/** @param {View} view */
export function loginView({ act, choices }) {
  /** @param {Event & { currentTarget: HTMLFormElement }} event */
  const submit = (event) => {
    event.preventDefault();
    const key = new FormData(event.currentTarget).get('key');
    if (typeof key === 'string' && key.trim() !== '') void act.login(key.trim());
  };
  return html`<section class="login" aria-labelledby="login-title">
    <h2 id="login-title">API key</h2>
    <form onSubmit=${submit}>
      <label class="input"
        ><span>Type or paste the key of this kit</span>
        <input type="password" name="key" autocomplete="current-password" required />
      </label>
      <button type="submit" class="send">Open</button>
      <p role="status">${choices.trouble}</p>
    </form>
  </section>`;
}
