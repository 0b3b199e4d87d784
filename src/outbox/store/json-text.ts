/** Bodies are stored as JSON text and not parsed in transit; this detects text that a damaged disk has corrupted. */

export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
