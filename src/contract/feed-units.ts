/** Quantities that the feeds of several kinds of assets share, with their units. */
import { z } from 'zod';
import { time_chars_max } from './limits.ts';

/** The one datum of the interface. Null when only the height above mean sea level is known: the two differ by up to 106 m. */
export const altitude = z.number().nullable().describe('metres above the WGS-84 ellipsoid');
export const speed = z.number().nonnegative().nullable().describe('metres per second');
export const heading = z.number().min(0).max(360).nullable().describe('degrees clockwise from true north');
export const percent = z.number().min(0).max(100).nullable();
export const count = z.int().nonnegative().nullable();
export const volt = z.number().nonnegative().nullable().describe('volts');
/** UTC, when the connector saw it: devices' own clocks are often wrong. */
export const timestamp = z.iso.datetime().max(time_chars_max);
