/** Reads challenges of HTTP digest (RFC 7616, RFC 9110 section 11.6.1) as cameras send them. Pure. */

/** Limits: challenges that are read, and characters of each; longer ones are ignored. */
const challenges_max = 8;
const challenge_chars_max = 2_048;
const scheme = /(?:^|,)\s{0,8}(?=(?:digest|basic|bearer|negotiate|ntlm)(?:\s|,|$))/giu;

/** The challenges of HTTP digest in the headers `WWW-Authenticate`, of which each may hold several of any kind. */
export function digestChallenges(headers: readonly string[]): readonly string[] {
  return headers
    .slice(0, challenges_max)
    .filter((each) => each.length <= challenge_chars_max)
    .flatMap((each) => divided(each))
    .slice(0, challenges_max)
    .filter((each) => /^digest\s/iu.test(each));
}

function divided(header: string): readonly string[] {
  // Commas and words within quotes divide nothing.
  const plain = header.replaceAll(/"[^"]*"/gu, (quoted) => '"'.repeat(quoted.length));
  const starts = [...plain.matchAll(scheme)].map(({ index, 0: found }) => ({
    end: index,
    begin: index + found.length,
  }));
  return starts.map(({ begin }, at) => header.slice(begin, starts[at + 1]?.end).trim());
}
