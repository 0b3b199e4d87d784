/** Metadata of a partner asset, where the service gives it; edited as JSON by a key that may. */
import { isRecord, parseJson } from '../../world/json.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { card, name } from '../parts/marks.ts';
import type { LiveAsset, View } from '../../types.d.ts';

export function metadataCard(asset: LiveAsset, view: View) {
  if (asset.protocol !== 'partner') return '';
  const { choices, act } = view;
  const known = choices.metadata.get(asset.id);
  if (known === undefined) act.loadMetadata(asset.id);
  const mayWrite = choices.session?.scopes.includes('assets:write') === true;
  if (!mayWrite && !isRecord(known?.value)) return '';
  return card('metadata', t.metadata.title, editor(asset, view, mayWrite));
}

function editor(asset: LiveAsset, { choices, act }: View, mayWrite: boolean) {
  const known = choices.metadata.get(asset.id);
  const text = choices.typed.get(`${asset.id} metadata`) ?? JSON.stringify(known?.value ?? {}, undefined, 2);
  const isValid = isRecord(parseJson(text));
  const type = ({ currentTarget }: Event & { currentTarget: HTMLTextAreaElement }) => {
    choices.typed.set(`${asset.id} metadata`, currentTarget.value);
    act.changed();
  };
  const save = () => (isValid ? void act.saveMetadata(asset.id, text) : undefined);
  return html`<div class="pad">
    <label class="input"
      ><span class="unseen">${t.metadata.title}</span>
      <textarea rows="5" spellcheck=${false} readonly=${!mayWrite} value=${text} onInput=${type}></textarea>
      <span class="note">${isValid ? '' : html`<b class="fault">${t.form.notJson}</b>`}</span></label
    >
    ${mayWrite && html`<button type="button" class="btn" aria-disabled=${String(!isValid)} onClick=${save}>${t.metadata.save}</button>`}
    <p class="outcome" role="status">${known?.text ? name(known.text) : ''}</p>
  </div>`;
}
