/** Columns of the tables as values. What stands in the tables was checked on its way in. */
import { z } from 'zod';

export const text = z.string();
export const textOrNull = text.nullable();
/** PostgreSQL gives integers of 64 bits as text. */
export const number = z.coerce.number();
export const numberOrNull = z.union([z.null(), number]);
export const jsonText = text.transform((written): unknown => JSON.parse(written));
export const texts = jsonText.pipe(z.array(text).readonly());
/** `*`: all. */
export const textsOrAll = jsonText.pipe(z.union([z.literal('*'), z.array(text).readonly()]));
