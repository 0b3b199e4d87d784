/** How the simulated ONVIF camera pans and tilts: at a velocity until it is stopped, or to a preset, which takes a while. */

/** Degrees a second at velocity 1. */
const full_speed_dps = 60;
const tilt_max_deg = 90;
/** Presets lie this far apart. */
const preset_spacing_deg = 40;

export class SimMotor {
  /** Velocity as it was asked for, -1 to 1. */
  x = 0;
  y = 0;
  /** The same of the lens. */
  zoom = 0;
  /** Where it went by AbsoluteMove or RelativeMove, in the coordinates of the request. */
  way: { readonly x: number; readonly y: number; readonly zoom: number } = { x: 0, y: 0, zoom: 0 };
  /** Token of the tour that runs. */
  tour: string | undefined;
  /** Token of the preset that it went to last. */
  preset: string | undefined;
  /** Number of movement commands. */
  moved = 0;
  /** How long the way to a preset takes. */
  way_ms = 0;
  #pan_deg = 0;
  #tilt_deg = 0;
  #since_ms = performance.now();
  #arrives_ms = 0;

  get isMoving(): boolean {
    const isTurning = this.x !== 0 || this.y !== 0 || this.tour !== undefined;
    return isTurning || performance.now() < this.#arrives_ms;
  }

  /** Pan goes round, tilt ends at a stop. */
  get position(): { readonly pan_deg: number; readonly tilt_deg: number } {
    const seconds = (performance.now() - this.#since_ms) / 1_000;
    const pan = this.#pan_deg + this.x * full_speed_dps * seconds;
    const tilt = this.#tilt_deg + this.y * full_speed_dps * seconds;
    return {
      pan_deg: ((((pan + 180) % 360) + 360) % 360) - 180,
      tilt_deg: Math.max(-tilt_max_deg, Math.min(tilt_max_deg, tilt)),
    };
  }

  move(x: number, y: number): void {
    this.#turn(x, y);
    this.moved += 1;
  }

  stop(): void {
    this.zoom = 0;
    this.#turn(0, 0);
  }

  /** `index`: the place of the preset in the camera's list. */
  goTo(preset: string | undefined, index: number): void {
    this.#turn(0, 0);
    this.preset = preset;
    this.#pan_deg = Math.max(0, index) * preset_spacing_deg;
    this.#tilt_deg = 0;
    this.#arrives_ms = performance.now() + this.way_ms;
  }

  /** Takes as long as the way to a preset. */
  travel(way: Partial<SimMotor['way']>): void {
    this.#turn(0, 0);
    this.way = { ...this.way, ...way };
    this.moved += 1;
    this.#arrives_ms = performance.now() + this.way_ms;
  }

  #turn(x: number, y: number): void {
    const { pan_deg, tilt_deg } = this.position;
    this.#pan_deg = pan_deg;
    this.#tilt_deg = tilt_deg;
    this.#since_ms = performance.now();
    this.#arrives_ms = 0;
    this.x = x;
    this.y = y;
  }
}
