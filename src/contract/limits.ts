/**
 * Limits of strings and lists of the contract. A receiver may refuse a message that exceeds one; what a device reports is cut
 * to them before it is published. Feeds are open objects: the size of the message bounds what a driver adds to them.
 */

/** Names, models, versions, modes: what stands on one line beside others. */
export const name_chars_max = 256;
/** Keys made from hardware identities. */
export const key_chars_max = 512;
/** Sentences for people. */
export const sentence_chars_max = 2_000;
export const url_chars_max = 2_048;
/** An address of IP or hardware, with its zone. */
export const address_chars_max = 64;
export const time_chars_max = 40;
/** Feeds of one asset. */
export const feeds_max = 64;
export const feed_chars_max = 64;
/** Commands of one asset. */
export const commands_max = 256;
export const command_chars_max = 128;
/** Entries of a list inside a feed message: batteries, reasons, antennas. */
export const feed_list_max = 64;
/** Sentences on what is wrong with a kit. */
export const degraded_max = 64;

/** The text, cut to so many characters; never in the middle of a surrogate pair. */
export function cut(text: string, chars_max: number): string {
  if (text.length <= chars_max) return text;
  return text.slice(0, chars_max).replace(/[\uD800-\uDBFF]$/u, '');
}
