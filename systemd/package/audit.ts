/** `npm run audit`: queries the registry for known vulnerabilities of the shipped libraries; reports a registry that does not answer. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { z } from 'zod';

const report = z.object({
  vulnerabilities: z.record(
    z.string(),
    z.looseObject({ severity: z.string(), range: z.string(), fixAvailable: z.unknown() }),
  ),
});
/** These end the run; what is lower is printed. */
const grave: ReadonlySet<string> = new Set(['high', 'critical']);

export interface Verdict {
  readonly isPassed: boolean;
  readonly lines: readonly string[];
}

/** Reads what `npm audit --json` printed. */
export function verdict(text: string): Verdict {
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch {
    return { isPassed: true, lines: ['skipped: npm audit has printed no report'] };
  }
  const read = report.safeParse(answer);
  if (!read.success) {
    const { message } = z.looseObject({ message: z.string().catch('no report') }).parse(answer);
    return { isPassed: true, lines: [`skipped: the registry does not answer npm audit (${message})`] };
  }
  const found = Object.entries(read.data.vulnerabilities);
  if (found.length === 0)
    return { isPassed: true, lines: ['no known flaws in the libraries that are shipped'] };
  return {
    isPassed: !found.some(([, { severity }]) => grave.has(severity)),
    lines: found.map(([name, { severity, range }]) => `${severity}: ${name} ${range}`),
  };
}

if (import.meta.main) {
  const { stdout } = await promisify(execFile)('npm', ['audit', '--omit=dev', '--json']).catch(
    (error: { stdout?: string }) => ({ stdout: error.stdout ?? '' }),
  );
  const { isPassed, lines } = verdict(stdout);
  process.stdout.write(`${lines.join('\n')}\n`);
  process.exitCode = isPassed ? 0 : 1;
}
