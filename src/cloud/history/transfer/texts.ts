/** Sentences about exports that people read; tests refer to them by name. */
export const texts = {
  ends_early: (kit_id: string) =>
    `the export ends before the end of kit ${kit_id}; import the complete file (the part that was read is imported)`,
  kits_missing: (kits: number) =>
    `the export ends before its last ${kits === 1 ? 'kit' : `${kits} kits`}; import the complete file (the part that was read is imported)`,
  no_kit_line: (line: number) =>
    `line ${line}: no kit; the file is not an export of "kit-connector history export"`,
  line_unreadable: (line: number) =>
    `line ${line} is not part of an export; import the unmodified file (the part before it is imported)`,
  line_too_long: (line: number, most: number) => `line ${line} has more than ${most} characters`,
  later_version: (version: number) =>
    `the export was written by a later version (format ${version}); import it with that version`,
} as const;
