/** Registers a partner asset: something that reports its position through the service. */
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { name } from '../parts/marks.ts';
import { Sheet } from '../shell/sheet.ts';
import type { View } from '../../types.d.ts';

const types = ['vehicle', 'sensor', 'camera', 'drone'];

export function registerSheet(view: View) {
  const { act, choices, world } = view;
  const submit = (event: Event & { currentTarget: HTMLFormElement }) => {
    event.preventDefault();
    const data = new FormData(event.currentTarget);
    const text = (field: string) => {
      const value = data.get(field);
      return typeof value === 'string' ? value.trim() : '';
    };
    const body = {
      name: text('name'),
      type: text('type'),
      vendor: text('vendor'),
      model: text('model'),
      parent_id: text('parent_id'),
    };
    void act.register(Object.fromEntries(Object.entries(body).filter(([, value]) => value !== '')));
  };
  const parents = [...world.assets.values()].slice(0, 200);
  const content = html`<form class="command" onSubmit=${submit}>
    <p class="cap">${t.register.about}</p>
    ${field('name', t.register.name, true)}
    <label class="input"
      ><span>${t.asset.type}</span>
      <input type="text" name="type" list="asset-types" required maxlength="100" autocomplete="off" />
      <datalist id="asset-types">
        ${types.map((type) => html`<option value=${type}></option>`)}
      </datalist></label
    >
    ${field('vendor', t.register.vendor, false)} ${field('model', t.asset.model, false)}
    <label class="input"
      ><span>${t.register.parent} (${t.form.optional})</span>
      <select name="parent_id">
        <option value="">${t.register.noParent}</option>
        ${parents.map((asset) => html`<option key=${asset.id} value=${asset.id}>${name(asset.name)}</option>`)}
      </select></label
    >
    <button type="submit" class="btn main">${t.register.open}</button>
    <p class="fault" role="status">${choices.registering}</p>
  </form>`;
  return html`<${Sheet} title=${t.register.open} content=${content} onClose=${act.closeSheet} />`;
}

function field(key: string, label: string, isRequired: boolean) {
  return html`<label class="input"
    ><span>${label}${isRequired ? '' : ` (${t.form.optional})`}</span>
    <input type="text" name=${key} required=${isRequired} maxlength="100" autocomplete="off"
  /></label>`;
}
