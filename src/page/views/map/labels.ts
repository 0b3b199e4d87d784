/** Places labels beside their marks, so that none covers another. */

export interface Wanted {
  readonly x: number;
  readonly y: number;
  readonly text: string;
  readonly sub: string;
  readonly rank: number;
  readonly isFixed?: boolean;
}
interface Placed {
  readonly x: number;
  readonly y: number;
  readonly anchor: 'start' | 'middle' | 'end';
}
type Box = readonly [left: number, top: number, right: number, bottom: number];

const char_px = 7.2;
const line_px = 16;
const mark_px = 10;
const edge_px = 4;

/** The place of each label, undefined where there is no room; the lowest rank chooses first. */
export function placeLabels(
  wanted: readonly Wanted[],
  { w, h }: { readonly w: number; readonly h: number },
): readonly (Placed | undefined)[] {
  const taken: Box[] = wanted.map(({ x, y, isFixed }) =>
    isFixed ? [x, y, x, y] : [x - mark_px, y - mark_px, x + mark_px, y + mark_px],
  );
  const placed: (Placed | undefined)[] = wanted.map(() => undefined);
  const order = wanted.map((_, i) => i).sort((a, b) => (wanted[a]?.rank ?? 0) - (wanted[b]?.rank ?? 0));
  for (const i of order) {
    const label = wanted[i];
    if (!label) continue;
    for (const { at, box } of spotsOf(label)) {
      const isIn = box[0] >= edge_px && box[1] >= edge_px && box[2] <= w - edge_px && box[3] <= h - edge_px;
      if (!isIn || taken.some((other, n) => n !== i && overlaps(box, other))) continue;
      placed[i] = at;
      taken.push(box);
      break;
    }
  }
  return placed;
}

/** Right, left, below, above; only on the point itself, for the labels of rings. */
function spotsOf({
  x,
  y,
  text,
  sub,
  isFixed,
}: Wanted): readonly { readonly at: Placed; readonly box: Box }[] {
  const wide = Math.max(text.length, sub.length) * char_px;
  const high = sub === '' ? line_px : 2 * line_px;
  const gap = mark_px + 4;
  if (isFixed)
    return [{ at: { x, y: y + 4, anchor: 'middle' }, box: [x - wide / 2, y - 8, x + wide / 2, y + 8] }];
  return [
    { at: { x: x + gap, y: y + 4.5, anchor: 'start' }, box: [x + gap, y - 8, x + gap + wide, y - 8 + high] },
    { at: { x: x - gap, y: y + 4.5, anchor: 'end' }, box: [x - gap - wide, y - 8, x - gap, y - 8 + high] },
    {
      at: { x, y: y + gap + 11, anchor: 'middle' },
      box: [x - wide / 2, y + gap, x + wide / 2, y + gap + high],
    },
    {
      at: { x, y: y - gap - high + 12, anchor: 'middle' },
      box: [x - wide / 2, y - gap - high, x + wide / 2, y - gap],
    },
  ];
}

function overlaps(a: Box, b: Box) {
  return a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
}
