/** Files of a kit, of an asset, and pictures of alarms: what they are, where they are, and how they come here. */
import { own } from '../../json.ts';
import { clock, number, size } from '../../units.ts';
import {
  contentOf,
  filesOf,
  isPicture,
  knownFile,
  listOf,
  loadFiles,
  requestFile,
} from '../../world/files.ts';
import { assetName } from '../../world/names.ts';
import { addressOf } from '../../world/route.ts';
import { plain } from '../../world/text.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { icon, shape, type Shape } from '../parts/icon.ts';
import { card, lostBox, name, sentence } from '../parts/marks.ts';
import { Sheet } from '../shell/sheet.ts';
import type { KitFile, LiveAsset, View } from '../../types.d.ts';

/** Of one asset, on its page. */
const of_asset_max = 5;

export function filesScreen(view: View) {
  const { choices } = view;
  return {
    heading: { title: t.files.title, isKit: true, back: addressOf('assets', choices.kit_id) },
    body: html`<div class="page">
      ${lostBox(view)}
      <h1 class="hero only-phone">${t.files.title}</h1>
      <p class="fault" role="status">${choices.file_fault}</p>
      <section class="card" id="files" aria-label=${t.files.title}>
        ${list(view, '', filesOf(view.world, ''))}
      </section>
    </div>`,
  };
}

/** The newest files of an asset. Nothing for assets that make none. */
export function filesCard(asset: LiveAsset, view: View) {
  const found = filesOf(view.world, asset.id);
  const makesFiles = asset.protocol !== 'partner' && (asset.type === 'drone' || asset.type === 'camera');
  if (!makesFiles && found.length === 0) return '';
  const all = html`<a class="btn small" href=${addressOf('files', view.choices.kit_id)}>${t.files.all}</a>`;
  return card(
    'files',
    asset.type === 'drone' ? t.files.logs : t.files.title,
    html`<p class="fault" role="status">${view.choices.file_fault}</p>
      ${list(view, asset.id, found.slice(0, of_asset_max))}`,
    all,
  );
}

function list(view: View, asset_id: string, shown: readonly KitFile[]) {
  const { isLoading, fault, next } = listOf(view, asset_id);
  const more = () => void loadFiles(view, asset_id, next);
  const type = view.world.assets.get(asset_id)?.type ?? '';
  const none = own(t.files.none, type) ?? t.files.none.kit;
  return html`${
    shown.length === 0
      ? html`<p class="empty">
          ${isLoading ? t.history.loading : fault ? t.history.fault(plain(fault)) : none}
        </p>`
      : html`<ul class="rows">
          ${shown.map((file) => fileRow(file, view, asset_id === ''))}
        </ul>`
  }
  ${asset_id === '' && next !== null && html`<button type="button" class="btn plain more" aria-disabled=${String(isLoading)} onClick=${more}>${t.history.older}</button>`}`;
}

function fileRow(file: KitFile, view: View, hasAsset: boolean) {
  const { id, kind, name: title, at, bytes, asset_id, state } = file;
  const { world } = view;
  const asset = asset_id === null ? t.nav.label : (world.assets.get(asset_id)?.name ?? t.task.removedAsset);
  const facts = [hasAsset ? plain(asset) : '', clock(Date.parse(at)), size(bytes)].filter(
    (text) => text !== '',
  );
  return html`<li key=${id} class="row file">
    ${thumbnail(file, view)}
    <div class="file-text">
      <b>${t.files.kind[kind]}</b> ${name(title)}
      <span class="cap">${facts.join(', ')}</span>
      ${stateText(file)}
    </div>
    ${
      state === 'stored'
        ? html`<a
            class="btn small"
            href=${contentOf(file)}
            download=${plain(title)}
            aria-label=${t.files.downloadOf(plain(title))}
            >${icon('download', 's')}${t.files.download}</a
          >`
        : ''
    }
    ${
      mayRequest(file, view)
        ? html`<button
            type="button"
            class="btn small"
            aria-label=${t.files.requestOf(plain(title))}
            onClick=${() => void requestFile(view, file)}
          >
            ${t.files.request}
          </button>`
        : ''
    }
  </li>`;
}

function mayRequest({ state, ordered, received_bytes }: KitFile, { choices }: View) {
  const waits = state === 'at_kit' && !ordered && received_bytes === 0;
  return waits && choices.session?.scopes.includes('commands') === true;
}

/** A small picture that opens large, or the sign of its kind. */
export function thumbnail(file: KitFile, { act }: View) {
  const label = t.files.openOf({ kind: t.files.kind[file.kind], time: clock(Date.parse(file.at)) });
  if (!isPicture(file))
    return html`<span class="thumb">${icon(file.kind === 'flight_log' ? 'drone' : 'logs')}</span>`;
  const src = sourceOf(file);
  const open = () => act.openSheet(`file ${file.id}`);
  return html`<button type="button" class="thumb" aria-label=${label} aria-haspopup="dialog" onClick=${open}>
    ${src === '' ? icon('cctv') : html`<img src=${src} alt="" loading="lazy" />`}
  </button>`;
}

function sourceOf(file: KitFile): string {
  const { thumbnail: small = '', state } = file;
  if (/^[\w+/]+=*$/u.test(small)) return `data:image/jpeg;base64,${small}`;
  return state === 'stored' ? contentOf(file) : '';
}

/** The picture as large as the screen allows: the whole one where it is here, else the small one. */
function pictureSheet(file: KitFile, asset: string, { act }: View) {
  const { at, state } = file;
  const title = t.files.kind[file.kind];
  const time = clock(Date.parse(at), { isExact: true });
  const src = state === 'stored' ? contentOf(file) : sourceOf(file);
  const content = html`<figure class="large-picture">
      ${src === '' ? html`<p class="empty">${t.files.notHere}</p>` : html`<img src=${src} alt=${t.files.openOf({ kind: title, time })} />`}
      <figcaption><span>${asset && html`${name(asset)}, `}${time}</span> ${stateText(file)}</figcaption>
    </figure>
    ${
      state === 'stored' &&
      html`<a class="btn" href=${contentOf(file)} download=${plain(file.name)}
        >${icon('download', 's')}${t.files.download}</a
      >`
    }`;
  return html`<${Sheet} isLarge=${true} title=${title} content=${content} onClose=${act.closeSheet} />`;
}

/** The sheet of a file of this kit, when it is open. */
export function fileSheet(view: View) {
  const { choices, world } = view;
  const [, id = ''] = /^file (.+)$/u.exec(choices.sheet ?? '') ?? [];
  const file = world.files.get(id) ?? knownFile(id);
  return file ? pictureSheet(file, assetName(view, file.kit_id, file.asset_id ?? ''), view) : '';
}

/** Where it is: a shape and words. */
function stateText({ state, ordered, received_bytes, bytes, reason }: KitFile) {
  const mark = (kind: string, form: Shape, text: unknown) =>
    html`<span class=${`state ${kind}`}>${shape(form)}<span>${text}</span></span>`;
  if (state === 'stored') return mark('good', 'on', t.files.here);
  if (state === 'dropped')
    return mark('bad', 'off', html`${t.files.dropped}${reason && html`: ${sentence(reason)}`}`);
  if (received_bytes > 0)
    return html`${mark('idle', 'half', t.files.onItsWay(number(Math.floor((received_bytes / bytes) * 100))))}
      <progress max=${bytes} value=${received_bytes} aria-hidden="true"></progress>`;
  if (reason) return mark('warn', 'warn', html`${t.files.atKit}: ${sentence(reason)}`);
  return mark('idle', ordered ? 'half' : 'ring', ordered ? t.files.requested : t.files.atKit);
}
