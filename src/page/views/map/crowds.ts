/** Finds marks that stand close together, so that they can be drawn apart. */

/** Nearer than this, marks of full size touch. */
const tight_px = 20;
/** Nearer than this, one mark hides the other. */
const covered_px = 6;

/** `covered`: the places of the others that the mark hides or is hidden by. */
interface Crowd {
  isTight: boolean;
  covered: readonly number[];
}

/** For each mark, what stands near it. */
export function crowdsOf(places: readonly (readonly [x: number, y: number])[]): readonly Crowd[] {
  const crowds: readonly { isTight: boolean; covered: number[] }[] = places.map(() => ({
    isTight: false,
    covered: [],
  }));
  const order = places.map((_, i) => i).sort((a, b) => (places[a]?.[0] ?? 0) - (places[b]?.[0] ?? 0));
  for (const [n, i] of order.entries()) {
    const [x, y] = places[i] ?? [0, 0];
    for (let k = n + 1; k < order.length; k += 1) {
      const j = order[k] ?? 0;
      const [other_x, other_y] = places[j] ?? [0, 0];
      if (other_x - x >= tight_px) break;
      const apart_px = Math.hypot(other_x - x, other_y - y);
      if (apart_px >= tight_px) continue;
      for (const [one, other] of [
        [i, j],
        [j, i],
      ] as const) {
        const crowd = crowds[one];
        if (!crowd) continue;
        crowd.isTight = true;
        if (apart_px < covered_px) crowd.covered.push(other);
      }
    }
  }
  return crowds;
}
