/** The motor of a simulated vendor camera: moves until it receives a stop or reaches its end stop, like the real ones. */

/** Degrees per second at speed 1. */
const degrees_per_speed = 0.5;
const end_stop_deg = 175;
const directions: Readonly<Record<string, readonly [number, number]>> = {
  Left: [-1, 0],
  Right: [1, 0],
  Up: [0, 1],
  Down: [0, -1],
};
const zooms: Readonly<Record<string, number>> = { ZoomInc: 1, ZoomDec: -1 };

export class SimMotor {
  #x = 0;
  #y = 0;
  #velocity: readonly [number, number] = [0, 0];
  #since_ms = performance.now();
  stops = 0;
  /** Direction in which the lens moves: 1 in, -1 out. */
  zoom = 0;

  get isMoving(): boolean {
    return this.#velocity[0] !== 0 || this.#velocity[1] !== 0;
  }

  get position(): { readonly x: number; readonly y: number } {
    const seconds = (performance.now() - this.#since_ms) / 1_000;
    const at = (from: number, speed: number): number =>
      Math.max(-end_stop_deg, Math.min(end_stop_deg, from + speed * seconds));
    return { x: at(this.#x, this.#velocity[0]), y: at(this.#y, this.#velocity[1]) };
  }

  /** False for an operation that is not known. */
  operate(op: string, speed: number): boolean {
    const direction = directions[op];
    const zoom = zooms[op];
    if (op !== 'Stop' && !direction && zoom === undefined) return false;
    this.zoom = zoom ?? 0;
    ({ x: this.#x, y: this.#y } = this.position);
    this.#since_ms = performance.now();
    const [x, y] = direction ?? [0, 0];
    this.#velocity = [x * speed * degrees_per_speed, y * speed * degrees_per_speed];
    if (op === 'Stop') this.stops += 1;
    return true;
  }

  jumpTo(x: number): void {
    this.#x = x;
    this.#velocity = [0, 0];
    this.#since_ms = performance.now();
  }
}
