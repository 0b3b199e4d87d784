/** Bodies are kept as JSON text and not parsed on their way; this tells text that a damaged disk has spoilt. */

export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
