/** The path of a line through the points of one stretch. */

/** A point without a neighbour is a dot: a path that only moves would draw nothing. */
export function lineThrough(points: readonly (readonly [x: number, y: number])[]) {
  const places = points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`);
  return places.length === 0 ? '' : `M${places.join('L')}${places.length === 1 ? 'h0' : ''}`;
}
