/** How the simulated multicopter moves: simple, but never faster than a real one. */
import type { Place } from '../vehicles/geo.ts';
import { distance_m } from '../vehicles/geo.ts';
import type { ModeName } from '../vehicles/modes.ts';

/**
 * The modes of the interface, and those in which it holds, orbits, takes off, switches its motors off, or as a submarine rises and
 * keeps its depth.
 */
export type SimMode = ModeName | 'DEPTH_HOLD' | 'HOLD' | 'MOTORS_OFF' | 'ORBIT' | 'SURFACE' | 'TAKEOFF';

export interface Target extends Place {
  readonly height_m: number;
}

/** A circle around a place. */
export interface Circle extends Target {
  /** Negative: counter-clockwise. */
  readonly radius_m: number;
  readonly speed_mps: number;
}

export interface Home extends Place {
  readonly alt_amsl_m: number;
}

const speed_default_mps = 8;
const climb_mps = 3;
const return_height_m = 15;
/** Without a stored mission: a circle around home. */
const circle_radius_m = 60;
const circle_height_m = 40;
const circle_degrees_per_s = 6;
const arrived_m = 0.5;
/** A waypoint is reached. */
const near_m = 1;
const ground_m = 0.3;
/** Of a submarine that is under water, and at most at the surface. */
const depth_m = 20;
const surface_depth_m = 0.1;
const metres_per_degree = 111_195;

/** Height counts from home. */
export class Flight {
  home: Home;
  lat: number;
  lon: number;
  height_m: number;
  armed: boolean;
  mode: SimMode;
  /** Where it flies to, in GUIDED. */
  target: Target | undefined;
  /** Where it flies first, around an obstacle on the way to its target. */
  around: Target | undefined;
  /** Whether its takeoff mode ends at its height, in holding. */
  holds_after_takeoff = true;
  /** What it flies around, in ORBIT. */
  circle: Circle | undefined;
  north_mps = 0;
  east_mps = 0;
  up_mps = 0;
  heading_deg = 0;
  /** Over ground, on the way to a point. */
  speed_mps = speed_default_mps;
  /** What the pilot's throttle stick demands in LOITER. */
  stick_climb_mps = 0;
  roll_deg = 0;
  /** After a crash it may take itself for flying still. */
  believes_airborne = false;
  /** Where its mission leads next, and what to do when it is there; without a mission it circles. */
  route: { readonly target: () => Target | undefined; readonly reached: () => void } | undefined;
  #circle_deg = 0;

  constructor(home: Home, { airborne }: { readonly airborne: boolean }) {
    this.home = home;
    this.lat = home.lat;
    this.lon = home.lon;
    this.height_m = airborne ? circle_height_m : 0;
    this.armed = airborne;
    this.mode = airborne ? 'AUTO' : 'LOITER';
  }

  /** A submarine that keeps its depth. */
  dive(): void {
    this.height_m = -depth_m;
    this.mode = 'DEPTH_HOLD';
  }

  /** Its heights count from the new home. */
  setHome(home: Home): void {
    const lower_m = home.alt_amsl_m - this.home.alt_amsl_m;
    this.height_m -= lower_m;
    if (this.target) this.target = { ...this.target, height_m: this.target.height_m - lower_m };
    this.home = home;
  }

  /** What it reports as its target. */
  get shown_target(): Target | undefined {
    return this.target && (this.around ?? this.target);
  }

  get isAirborne(): boolean {
    return this.height_m > ground_m;
  }

  step(seconds: number): void {
    const goal = this.armed ? this.#goal(seconds) : undefined;
    const before = { lat: this.lat, lon: this.lon, height_m: this.height_m };
    if (goal) this.#approach(goal, seconds);
    this.north_mps = ((this.lat - before.lat) * metres_per_degree) / seconds;
    this.east_mps = ((this.lon - before.lon) * metres_per_degree * cosine(this.lat)) / seconds;
    this.up_mps = (this.height_m - before.height_m) / seconds;
    if (Math.hypot(this.north_mps, this.east_mps) > 1) {
      this.heading_deg = ((Math.atan2(this.east_mps, this.north_mps) * 180) / Math.PI + 360) % 360;
    }
    this.#endMode();
  }

  #endMode(): void {
    // PX4 holds when it has reached the height of its takeoff.
    const is_ending = this.mode === 'TAKEOFF' && this.holds_after_takeoff;
    if (is_ending && this.target && this.height_m >= this.target.height_m - arrived_m) this.mode = 'LOITER';
    // An ArduSub that is at the surface, perhaps already when it gets the command to rise, keeps its depth.
    if (this.mode === 'SURFACE' && this.height_m >= -surface_depth_m) this.mode = 'DEPTH_HOLD';
    const is_coming_down = this.mode === 'RTL' || this.mode === 'LAND';
    if (is_coming_down && !this.isAirborne) this.armed = false;
  }

  #goal(seconds: number): Target | undefined {
    const { lat, lon } = this;
    switch (this.mode) {
      case 'AUTO':
        return this.#onMission(seconds);
      case 'GUIDED':
      case 'TAKEOFF':
        return this.shown_target;
      case 'LAND':
      case 'SURFACE':
        return { lat, lon, height_m: 0 };
      case 'RTL':
        return this.#wayHome();
      case 'ORBIT':
        return this.#onOrbit(seconds);
      case 'LOITER':
        return this.#onStick(seconds);
      case 'HOLD':
      case 'MOTORS_OFF':
      case 'DEPTH_HOLD':
    }
    return undefined;
  }

  #onStick(seconds: number): Target | undefined {
    const { lat, lon, height_m, stick_climb_mps } = this;
    if (stick_climb_mps === 0) return undefined;
    return { lat, lon, height_m: Math.max(0, height_m + stick_climb_mps * seconds) };
  }

  #wayHome(): Target {
    const isThere = distance_m(this, this.home) < arrived_m;
    return { ...this.home, height_m: isThere ? 0 : Math.max(this.height_m, return_height_m) };
  }

  #onMission(seconds: number): Target | undefined {
    return this.route ? this.#onRoute(this.route) : this.#onCircle(seconds);
  }

  #onOrbit(seconds: number): Target | undefined {
    if (!this.circle) return undefined;
    const { radius_m, speed_mps, ...center } = this.circle;
    const north_m = (this.lat - center.lat) * metres_per_degree;
    const east_m = (this.lon - center.lon) * metres_per_degree * cosine(center.lat);
    const angle = Math.atan2(east_m, north_m) + (speed_mps * seconds) / radius_m;
    const degrees = Math.abs(radius_m) / metres_per_degree;
    return {
      lat: center.lat + degrees * Math.cos(angle),
      lon: center.lon + (degrees * Math.sin(angle)) / cosine(center.lat),
      height_m: center.height_m,
    };
  }

  #onRoute({ target, reached }: NonNullable<Flight['route']>): Target | undefined {
    const goal = target();
    if (!goal || distance_m(this, goal) > near_m || Math.abs(this.height_m - goal.height_m) > near_m)
      return goal;
    reached();
    return target();
  }

  #onCircle(seconds: number): Target {
    this.#circle_deg += circle_degrees_per_s * seconds;
    const angle = (this.#circle_deg * Math.PI) / 180;
    const degrees = circle_radius_m / metres_per_degree;
    return {
      lat: this.home.lat + degrees * Math.cos(angle),
      lon: this.home.lon + (degrees * Math.sin(angle)) / cosine(this.home.lat),
      height_m: circle_height_m,
    };
  }

  #approach(goal: Target, seconds: number): void {
    const away_m = distance_m(this, goal);
    const share = Math.min(1, (this.speed_mps * seconds) / Math.max(away_m, 1e-6));
    this.lat += (goal.lat - this.lat) * share;
    this.lon += (goal.lon - this.lon) * share;
    const climb_m = climb_mps * seconds;
    this.height_m += Math.max(-climb_m, Math.min(climb_m, goal.height_m - this.height_m));
  }
}

function cosine(lat: number): number {
  return Math.cos((lat * Math.PI) / 180);
}
