/** Kinds of values that options of drivers have in common. */
import { z } from 'zod';

export function numberIn(min: number, max: number) {
  return z.number().min(min).max(max);
}

export function wholeIn(min: number, max: number) {
  return z.int().min(min).max(max);
}

export function textUpTo(chars_max: number) {
  return z.string().min(1).max(chars_max);
}

export const portOption = wholeIn(1, 65_535);

/** Of HTTPS servers that sign their certificates themselves. */
export const certificateOption = z
  .string()
  .regex(/^(?:[0-9A-Fa-f]{2}:?){32}$/u, 'must be the 64 hexadecimal digits of a SHA-256 fingerprint')
  .optional()
  .describe('the only certificate to accept; the one of the first contact when left out');

export const alarmPictureOption = z
  .boolean()
  .default(false)
  .describe('send a small picture (24 KiB at most) with each alarm; not on metered links');
