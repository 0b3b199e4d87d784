/** The commands of an asset as rows, and the sheet of one of them: inputs from the schema, the button, the outcome. */
import { plain } from '../../world/text.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { icon } from '../parts/icon.ts';
import { card, name } from '../parts/marks.ts';
import { Sheet } from '../shell/sheet.ts';
import { lockReason, lockText, riskMark, titleOf } from './about.ts';
import { fieldsOf, readFields } from './form.ts';
import { input, jsonInput, positionButton, type Type } from './inputs.ts';
import { json_field, needsConfirmation, readJson } from './payload.ts';
import { taskRow } from './task-row.ts';
import type { CommandDefinition, LiveAsset, View } from '../../types.d.ts';

export function commandsCard(asset: LiveAsset, view: View) {
  const commands = (view.world.commands.get(asset.id) ?? []).filter((command) => !hasOwnControl(command));
  if (commands.length === 0)
    return asset.protocol === 'partner'
      ? ''
      : card('commands', t.commands.title, html`<p class="empty">${t.commands.none}</p>`);
  return card(
    'commands',
    t.commands.title,
    html`${lockText(asset, view)}
      <ul class="rows">
        ${commands.map((command) => commandRow(asset, command, view))}
      </ul>`,
  );
}

/** The pad of a camera's page moves it, and its presets stand there by name. */
function hasOwnControl({ name: text, input_schema }: CommandDefinition) {
  return text === 'ptz_move' || (text === 'ptz_preset' && fieldsOf(input_schema)?.[0]?.kind === 'choice');
}

function commandRow(asset: LiveAsset, command: CommandDefinition, view: View) {
  const open = () => view.act.openSheet(`command ${command.name}`);
  return html`<li key=${command.name} class="command-row">
    <button type="button" aria-haspopup="dialog" onClick=${open}>
      <span><b>${titleOf(command)}</b>${riskMark(command)}</span>${icon('chevron-right', 's')}
    </button>
    <div class="outcome" role="status">${outcome(asset, command, view)}</div>
  </li>`;
}

/** The open command sheet of the asset that is shown; empty when there is none. */
export function commandSheet(asset: LiveAsset, view: View) {
  const { choices, act, world } = view;
  if (!choices.sheet?.startsWith('command ')) return '';
  const command = world.commands.get(asset.id)?.find(({ name: text }) => `command ${text}` === choices.sheet);
  if (!command) return '';
  return html`<${Sheet}
    key=${command.name}
    title=${titleOf(command)}
    aside=${riskMark(command)}
    content=${commandForm(asset, command, view)}
    onClose=${act.closeSheet}
  />`;
}

export function commandForm(asset: LiveAsset, command: CommandDefinition, view: View) {
  const { choices, act } = view;
  const key = `${asset.id} ${command.name}`;
  const fields = fieldsOf(command.input_schema);
  const typed = (wanted: string) =>
    choices.typed.get(`${key} ${wanted}`) ?? fields?.find((each) => each.name === wanted)?.initial ?? '';
  const type: Type = (field, text) => {
    choices.typed.set(`${key} ${field}`, text);
    act.changed();
  };
  const read = fields ? readFields(fields, typed) : readJson(typed(json_field));
  const order = choices.orders.get(key);
  const isBusy = lockReason(view, asset) !== undefined || order?.state === 'sending';
  const submit = (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    if (read.faults.size > 0) choices.orders.set(key, { state: 'refused', text: t.form.fault });
    else act.order({ asset, command, payload: read.payload });
    act.changed();
  };
  const faults: ReadonlyMap<string, string> =
    order?.state === 'refused' && order.text === t.form.fault ? read.faults : new Map();
  return html`<form
    key=${command.name}
    class="command"
    onSubmit=${submit}
    novalidate
    aria-label=${titleOf(command)}
  >
    <p class="cap"><bdi>${plain(command.description)}</bdi></p>
    ${lockText(asset, view)}
    ${
      fields
        ? fields.map((field) => input({ field, key, typed, type, fault: faults.get(field.name) }))
        : jsonInput({ key, typed, type, fault: faults.get(json_field) })
    }
    ${fields && positionButton({ fields, type, view })}
    <button type="submit" class="btn main" aria-disabled=${String(isBusy)}>
      ${titleOf(command)}${needsConfirmation(command) ? '…' : ''}
    </button>
    <div class="outcome" role="status">${outcome(asset, command, view)}</div>
  </form>`;
}

/** The newest task of this command, or the state of the order before it became a task. */
export function outcome(asset: LiveAsset, command: CommandDefinition, view: View) {
  const order = view.choices.orders.get(`${asset.id} ${command.name}`);
  if (order && order.state !== 'sent')
    return html`<p class=${`order ${order.state}`}>${name(order.text)}</p>`;
  const tasks = [...view.world.tasks.values()].filter(
    (task) => task.asset_id === asset.id && task.command_name === command.name,
  );
  const [newest] = tasks.sort((a, b) => Date.parse(b.created_at) - Date.parse(a.created_at));
  if (newest) return taskRow(newest, view);
  return order ? html`<p class="order">${plain(order.text)}</p>` : '';
}
