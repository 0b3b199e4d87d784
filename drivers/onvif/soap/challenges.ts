/** Reads challenges of HTTP digest (RFC 7616, RFC 9110 section 11.6.1) as cameras send them. Pure. */

/** Limits: challenges that are read, and characters of each; longer ones are ignored. */
const challenges_max = 8;
const challenge_chars_max = 2_048;
const digest_known = /algorithm="?(?:md5|sha-256)"?\s*(?:,|$)/iu;
const scheme = /(?:^|,)\s{0,8}(?=(?:digest|basic|bearer|negotiate|ntlm)(?:\s|,|$))/giu;

/** The challenges of `WWW-Authenticate` that can be met, in the form that the library reads. One header may hold several. */
export function knownChallenges(headers: readonly string[]): readonly string[] {
  return headers
    .slice(0, challenges_max)
    .filter((each) => each.length <= challenge_chars_max)
    .flatMap((each) => divided(each))
    .slice(0, challenges_max)
    .filter((each) => /^digest /iu.test(each) && (!/algorithm=/iu.test(each) || digest_known.test(each)))
    .map((each) =>
      each.replace(/qop="[^"]*\bauth\b(?!-)[^"]*"/iu, 'qop="auth"').replace(/^digest /iu, 'Digest '),
    );
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
