/** `kit-connector doctor`: checks what a kit needs, and names a remedy for each fault. */
import { type Finding, mostSevere } from './doctor/finding.ts';
import { examine } from './doctor/examine.ts';
import { columnsOf, type Paint, type Shell, oneLine, painter, say, printJson } from './terminal/shell.ts';
import { fold } from './terminal/width.ts';

export interface DoctorOptions {
  readonly config: string;
  readonly socket?: string;
  readonly ntp?: string;
  readonly json?: true;
}

/** Exit code by the most severe finding. */
export const doctor_exit = { ok: 0, warn: 1, fail: 2 } as const;

export async function doctor({ config, socket, ntp, json }: DoctorOptions, shell: Shell): Promise<number> {
  const credentials_dir = shell.env['CREDENTIALS_DIRECTORY'];
  const findings = await examine({ config_file: config, socket, ntp, credentials_dir }, shell.signal);
  return reportFindings(findings, { ...(json && { json }) }, shell);
}

/** Prints the findings; the exit code is that of the most severe one. */
export function reportFindings(
  findings: readonly Finding[],
  { json }: Pick<DoctorOptions, 'json'>,
  shell: Shell,
): number {
  const level = mostSevere(findings);
  if (json) printJson(shell, { level, findings });
  else {
    const lines = findings.map((finding) => findingLine(finding, painter(shell)));
    say(shell, ...lines.flatMap((line) => fold(line, columnsOf(shell.out), finding_column)));
  }
  return doctor_exit[level];
}

/** Column of a finding after its level. */
export const finding_column = 6;
const colours = { ok: 'good', warn: 'warn', fail: 'bad' } as const;

/** `fail  disk: 3 MB free; free some space` */
export function findingLine({ level, what, finding, remedy }: Finding, paint: Paint): string {
  const word = paint(colours[level], level.padEnd(4));
  return oneLine(`${word}  ${what}: ${finding}${remedy === null ? '' : `; ${remedy}`}`);
}
