/** Reads `test/guarantees.md`: sentences, and below each the tests that fail when it no longer holds. */

/** A test as the page names it. */
interface NamedTest {
  /** Below `test/`. */
  readonly file: string;
  /** As the source has it, with the placeholders of a table of cases. */
  readonly title: string;
}

export interface Guarantee {
  readonly sentence: string;
  readonly tests: readonly NamedTest[];
}

export function readGuarantees(page: string): readonly Guarantee[] {
  const guarantees: { sentence: string; tests: NamedTest[] }[] = [];
  for (const line of page.split('\n')) {
    const [, sentence] = /^- (.+)$/u.exec(line) ?? [];
    const [, file, title] = /^ {2}- `([^`]+)` (.+)$/u.exec(line) ?? [];
    if (sentence !== undefined) guarantees.push({ sentence, tests: [] });
    if (file !== undefined && title !== undefined) guarantees.at(-1)?.tests.push({ file, title });
  }
  return guarantees;
}

/** What is wrong with the page: sentences without a test, and tests that do not exist. `read` returns the text of a file below `test/`. */
export function faultsOf(
  guarantees: readonly Guarantee[],
  read: (file: string) => string | undefined,
): readonly string[] {
  return guarantees.flatMap(({ sentence, tests }) => {
    if (tests.length === 0) return [`no test: ${sentence}`];
    return tests
      .filter(({ file, title }) => !titlesIn(read(file) ?? '').has(title))
      .map(({ file, title }) => `no such test: ${file}: ${title}`);
  });
}

/** Titles of tests: first arguments of `it` and `test`, and first values in the rows of their tables. */
function titlesIn(source: string): ReadonlySet<string> {
  const literals = source.matchAll(/[([]\s*(['"`])((?:\\.|(?!\1)[^\n\\])*)\1,/gu);
  return new Set(Array.from(literals, ([, , title = '']) => title.replaceAll(/\\(.)/gu, '$1')));
}
