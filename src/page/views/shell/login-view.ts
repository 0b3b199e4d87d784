/** Asks for the API key. It is sent to the service once and not stored: the service answers with a cookie. */
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import type { View } from '../../types.d.ts';

export function loginView({ act, choices }: View) {
  const submit = (event: Event & { currentTarget: HTMLFormElement }) => {
    event.preventDefault();
    const key = new FormData(event.currentTarget).get('key');
    if (typeof key === 'string' && key.trim() !== '') void act.login(key.trim());
  };
  return html`<section key="login" class="card pad login" aria-labelledby="login-title">
    <h2 id="login-title" class="title">${t.login.title}</h2>
    <form onSubmit=${submit}>
      <label class="input"
        ><span>${t.login.label}</span>
        <input type="password" name="key" autocomplete="current-password" required />
      </label>
      <button type="submit" class="btn main">${t.login.open}</button>
      <p role="status" class="fault">${choices.trouble}</p>
    </form>
  </section>`;
}
