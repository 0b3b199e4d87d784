/** Texts that a hostile or broken device sends, each around a word that a reader may see. */
export const corpus = {
  'a terminal command that writes the clipboard': '\u001B]52;c;cm0gLXJm\u0007gate',
  'a terminal command that sets the title': '\u001B]0;owned\u001B\\gate',
  'a colour that hides what follows': '\u001B[8mgate',
  'a cursor that moves up and deletes': 'gate\u001B[1A\u001B[2K',
  'a C1 control sequence': '\u009B2Jgate\u0090x\u009C',
  'a forged line': 'gate\r\nok    everything is fine',
  'a line separator of Unicode': 'gate\u2028second\u2029third',
  'text from right to left': 'gate\u202Eexe.fdp\u202C',
  'isolates of direction': '\u2066gate\u2069\u200F\u061C',
  'characters of no width': '\u200Bgate\u200D\u2060\uFEFF',
  'a soft hyphen and fillers': 'gate\u00AD\u3164\u115F',
  'tags that nobody sees': 'gate\u{E0061}\u{E0062}',
  'half of a pair': 'gate\uD83D',
  'backspaces and a bell': 'evil\b\b\b\bgate\u0007',
  'a zero byte': 'gate\u0000',
} as const;

/** Whether a reader may be deceived by it; `kept`: what belongs to the carrier. */
export function isDeceptive(text: string, kept = /^$/u): boolean {
  return /[[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{DI}]--[\uFE0E\uFE0F]]/v.test(
    text.replaceAll(new RegExp(kept.source, 'gu'), ''),
  );
}
