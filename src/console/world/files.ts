/** Files of the kit that is shown, asked for once they are looked at and followed by frames; and those of alarms of any kit. */
import { field, listIn, textIn } from '../json.ts';
import type { FileList, KitFile, View, World } from '../types.d.ts';
import { t } from '../words/words.ts';
import { ask, reasonOf } from './api.ts';

const page_size = 50;
/** A picture that is still on its way is asked for so often. */
const again_ms = 10_000;
const shown_max = 500;

function isFile(value: unknown): value is KitFile {
  return ['id', 'kit_id', 'at', 'state', 'content_type'].every((key) => textIn(field(value, key)) !== '');
}

/** The files of an asset, or of the whole kit, newest first. */
export function filesOf({ files }: World, asset_id: string): readonly KitFile[] {
  return [...files.values()]
    .filter((file) => asset_id === '' || file.asset_id === asset_id)
    .sort((a, b) => b.at.localeCompare(a.at) || (a.id < b.id ? -1 : 1));
}

/** What was asked of the files of an asset, or with an empty id of the kit; asks the first time, and again after each connection. */
export function listOf(view: View, asset_id: string): FileList {
  const known = view.world.fileLists.get(asset_id);
  if (known) return known;
  const begun: FileList = { isLoading: true, fault: '', next: null };
  if (view.link.state === 'live') void loadFiles(view, asset_id, null);
  return begun;
}

/** Loads a page of the list; `cursor` null: the first. */
export async function loadFiles({ world, choices, act }: View, asset_id: string, cursor: string | null) {
  const { fileLists, files } = world;
  const before = fileLists.get(asset_id);
  if (before?.isLoading) return;
  const asked: FileList = { isLoading: true, fault: '', next: cursor };
  fileLists.set(asset_id, asked);
  const query = new URLSearchParams({
    limit: String(page_size),
    ...(asset_id !== '' && { assets: asset_id }),
    ...(cursor !== null && { cursor }),
  });
  let after: FileList = { ...asked, isLoading: false };
  try {
    const answer = await ask('GET', `/api/kits/${choices.kit_id}/files?${query}`);
    takePage(world, asset_id, { found: listIn(field(answer, 'files')).filter(isFile), cursor });
    const next = textIn(field(answer, 'next'));
    after = { ...after, next: next === '' || files.size >= shown_max ? null : next };
  } catch (error) {
    after = { ...after, fault: reasonOf(error, t.trouble.noAnswer) };
  }
  // Another connection has asked again meanwhile.
  if (fileLists.get(asset_id) === asked) fileLists.set(asset_id, after);
  act.arrived();
}

/** The first page is the truth about the time that it covers. */
function takePage(
  world: World,
  asset_id: string,
  { found, cursor }: { readonly found: readonly KitFile[]; readonly cursor: string | null },
) {
  const { files } = world;
  const oldest = found.at(-1)?.at ?? '';
  const covered = cursor === null ? filesOf(world, asset_id).filter(({ at }) => at >= oldest) : [];
  for (const { id } of covered) files.delete(id);
  if (files.size < shown_max) for (const file of found) files.set(file.id, file);
}

/** Orders the content from the kit; the frame shows what became of it. */
export async function requestFile({ world, choices, act }: View, { id, kit_id }: KitFile) {
  try {
    const ordered = await ask('POST', `/api/kits/${kit_id}/files/${id}/request`);
    if (isFile(ordered)) world.files.set(id, ordered);
    choices.file_fault = '';
  } catch (error) {
    choices.file_fault = t.order.refused(reasonOf(error, t.order.noAnswer));
  }
  act.changed();
}

/** Where the content of a file is read. */
export function contentOf({ kit_id, id }: Pick<KitFile, 'kit_id' | 'id'>): string {
  return `/api/kits/${kit_id}/files/${id}/content`;
}

export function isPicture({ content_type }: KitFile): boolean {
  return /^image\/(?:jpeg|png|webp|gif|avif)$/u.test(content_type);
}

/** The pictures of a kit by the events that they show. */
export function picturesByEvent({ files }: World): ReadonlyMap<string, KitFile> {
  const pictures = [...files.values()].filter(isPicture);
  return new Map(
    pictures.flatMap((file) =>
      (file.alarms ?? []).map(
        ({ feed, timestamp }) => [eventKey(file.asset_id ?? '', feed, timestamp), file] as const,
      ),
    ),
  );
}

export function eventKey(asset_id: string, feed: string, timestamp: unknown): string {
  return `${asset_id} ${feed} ${textIn(timestamp)}`;
}

const single: Map<string, { readonly file: KitFile | undefined; readonly asked_ms: number }> = new Map();
let isBusy = false;

/** The newest file of an alarm that is a picture; asked for one at a time, and again while it is on its way. */
export function pictureOf(
  { world, act }: View,
  kit_id: string,
  ids: readonly string[] = [],
): KitFile | undefined {
  const found = ids.map((id) => world.files.get(id) ?? known(kit_id, id, act.arrived));
  return found.find((file) => file && isPicture(file));
}

function known(kit_id: string, id: string, onNews: () => void): KitFile | undefined {
  const { file, asked_ms = -again_ms } = single.get(id) ?? {};
  const isDue = file?.state !== 'stored' && performance.now() - asked_ms >= again_ms;
  if (isDue && !isBusy) void loadFile(kit_id, id, onNews);
  return file;
}

/** A file of an alarm, as far as it was asked for. */
export function knownFile(id: string): KitFile | undefined {
  return single.get(id)?.file;
}

async function loadFile(kit_id: string, id: string, onNews: () => void) {
  isBusy = true;
  const asked_ms = performance.now();
  let file = single.get(id)?.file;
  try {
    const found = await ask('GET', `/api/kits/${kit_id}/files/${id}`);
    if (isFile(found)) file = found;
  } catch {
    // It was deleted, or the service does not answer: asked again later.
  }
  single.set(id, { file, asked_ms });
  if (single.size > shown_max) single.delete(single.keys().next().value ?? '');
  isBusy = false;
  onNews();
}
