/** How often a campaign kills: the number of its long form, unless the environment names another. */

/** `FAULTS_DAEMON_KILLS=20` and such. Throws for what is no positive number. */
export function numberOf(name: `FAULTS_${string}`, default_number: number): number {
  const text = process.env[name];
  if (text === undefined || text === '') return default_number;
  const number = Number(text);
  if (!Number.isInteger(number) || number < 1) throw new RangeError(`${name}=${text}: not a positive number`);
  return number;
}
