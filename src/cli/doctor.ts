/** `kit-connector doctor`: looks at everything a kit needs, and names the remedy of what it finds. */
import { type Finding, gravest } from './doctor/finding.ts';
import { examine } from './doctor/examine.ts';
import { type Paint, type Shell, painter, say, sayJson } from './shell.ts';

export interface DoctorOptions {
  readonly config: string;
  readonly socket?: string;
  readonly ntp?: string;
  readonly json?: true;
}

/** Exit code by the gravest finding. */
export const doctor_exit = { ok: 0, warn: 1, fail: 2 } as const;

export async function doctor({ config, socket, ntp, json }: DoctorOptions, shell: Shell): Promise<number> {
  const credentials_dir = shell.env['CREDENTIALS_DIRECTORY'];
  const findings = await examine({ config_file: config, socket, ntp, credentials_dir }, shell.signal);
  const level = gravest(findings);
  if (json) sayJson(shell, { level, findings });
  else say(shell, ...findings.map((finding) => findingLine(finding, painter(shell))));
  return doctor_exit[level];
}

const colours = { ok: 'good', warn: 'warn', fail: 'bad' } as const;

/** `fail  disk: 3 MB free; free some space` */
export function findingLine({ level, what, finding, remedy }: Finding, paint: Paint): string {
  const word = paint(colours[level], level.padEnd(4));
  return `${word}  ${what}: ${finding}${remedy === null ? '' : `; ${remedy}`}`;
}
