/** Metadata of a partner asset, where the service gives it; edited as JSON by a key that may. */
import { isRecord, parseJson } from '../../world/json.js';
import { t } from '../../words/words.js';
import { html } from '../parts/html.js';
import { card, name } from '../parts/marks.js';

/** @import { LiveAsset, View } from '../../types.d.ts' */

/**
 * @param {LiveAsset} asset
 * @param {View} view
 */
export function metadataCard(asset, view) {
  if (asset.protocol !== 'partner') return '';
  const { choices, act } = view;
  const known = choices.metadata.get(asset.id);
  if (known === undefined) act.loadMetadata(asset.id);
  const mayWrite = choices.session?.scopes.includes('assets:write') === true;
  if (!mayWrite && !isRecord(known?.value)) return '';
  return card('metadata', t.metadata.title, editor(asset, view, mayWrite));
}

/**
 * @param {LiveAsset} asset
 * @param {View} view
 * @param {boolean} mayWrite
 */
function editor(asset, { choices, act }, mayWrite) {
  const known = choices.metadata.get(asset.id);
  const text = choices.typed.get(`${asset.id} metadata`) ?? JSON.stringify(known?.value ?? {}, undefined, 2);
  const isValid = isRecord(parseJson(text));
  /** @param {Event & { currentTarget: HTMLTextAreaElement }} event */
  const type = ({ currentTarget }) => {
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
