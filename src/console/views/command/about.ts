/** What a command is called, what it risks, and why it cannot be sent now. */
import { assetState, isKitReachable } from '../../world/age.ts';
import { field, own } from '../../json.ts';
import { label, plain } from '../../world/text.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { shape } from '../parts/icon.ts';
import type { CommandDefinition, LiveAsset, View } from '../../types.d.ts';

/** The title from the definition, else what this page calls the command, else its name. */
export function titleOf(command: Pick<CommandDefinition, 'name'>): string {
  const title = field(command, 'title');
  if (typeof title === 'string' && title !== '') return plain(title);
  const known = own(t.command, command.name);
  if (known !== undefined) return known;
  const text = label(command.name);
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** What a value of a payload or a result is called. */
export function valueName(name: string): string {
  const text = own(t.form.names, name) ?? label(name);
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Returns why commands are locked now. */
export function lockReason(view: View, asset?: LiveAsset): string | undefined {
  return view.choices.moment_ms === null ? lockAtAnyTime(view, asset) : t.history.locked;
}

/** The same for a button that returns to now before it asks, as the commands that bring a vehicle to safety do. */
export function lockAtAnyTime(view: View, asset?: LiveAsset): string | undefined {
  const { isInStep, link, choices, world } = view;
  if (choices.session && !choices.session.scopes.includes('commands')) return t.lock.readOnly;
  if (!isInStep || link.state !== 'live') return t.lock.noLink;
  const isOfKit = asset === undefined || asset.protocol !== 'partner';
  if (isOfKit && world.kit && !isKitReachable(view)) return t.lock.kitOffline;
  return undefined;
}

export function lockText(asset: LiveAsset, view: View) {
  const reason = lockReason(view, asset);
  if (reason !== undefined) return html`<p class="lock">${reason}</p>`;
  return assetState(asset, view) === 'offline' ? html`<p class="lock">${t.lock.assetOffline}</p>` : '';
}

export function riskMark({ risk_level, requires_approval }: CommandDefinition) {
  if (risk_level === 'low' && !requires_approval) return '';
  const text = risk_level === 'low' ? t.risk.approval : t.risk[risk_level];
  return html`<span class=${risk_level === 'high' ? 'state bad' : 'state warn'}
    >${shape('warn')}<span>${text}</span></span
  >`;
}
