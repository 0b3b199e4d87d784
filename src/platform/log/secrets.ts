/** Takes secrets out of what is logged: by the names of facts, and out of any text. */

const hidden = '***';
const secretKey =
  /passw|passphrase|secret|token|authorization|credential|cookie|api_?key|^pwd$|^psk$|^key$|^pass$/i;
const depth_max = 6;
/** A longer text is cut: a device that answers with a whole page must not fill the log. */
const text_chars_max = 8_192;

/**
 * `user:password@` in addresses; cameras have passwords with an unescaped `@`. What may repeat before the
 * part that decides is bounded everywhere, so that a text of a device costs time in proportion to its length.
 */
const userInAddress = /([a-z0-9+.-]{1,30}:\/\/)[^\s/"\\]+@/gi;
/** The same with a `/` in the password. What looks like a port is none. */
const slashInPassword =
  /([a-z0-9+.-]{1,30}:\/\/)[^\s/@:"\\]{1,256}:(?!\d{1,5}(?:[/?#\s]|$))[^\s"\\@]{1,512}@/gi;
/** `password=...`, `"token": "..."` and the like; not `password_file=...`. */
const assigned =
  /((?:^|\W)(?:\w{0,64}(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key)|pass|pwd|psk)["']?\s*[=:]\s*)(?:"[^"]*"|'[^']*'|[^\s&"',;<>(){}[\]]+)/gi;
const authorization = /(authorization["']?\s*[:=]\s*)[^\r\n]+/gi;
const bearer = /\b(bearer\s+)[\w.~+/=-]{8,}/gi;
/** WS-Security of ONVIF, and the XML of vendors. */
const passwordElement = /(<(?:\w{1,64}:)?password\b[^>]{0,512}>)[^<]*/gi;

/** The text with passwords, tokens and credentials hidden, and not longer than a log line may be. */
export function withoutSecrets(text: string): string {
  const short = text.length > text_chars_max ? `${text.slice(0, text_chars_max)}...` : text;
  return short
    .replaceAll(userInAddress, `$1${hidden}@`)
    .replaceAll(slashInPassword, `$1${hidden}@`)
    .replaceAll(authorization, `$1${hidden}`)
    .replaceAll(assigned, `$1${hidden}`)
    .replaceAll(bearer, `$1${hidden}`)
    .replaceAll(passwordElement, `$1${hidden}`);
}

/** These names stand for something else in every line. */
const reserved: ReadonlySet<string> = new Set(['level', 'time', 'msg']);

/** A copy in which secrets are hidden at any depth, and errors are reduced to what a reader needs. */
export function harmlessFacts(facts: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(facts).map(([key, value]) => [
      reserved.has(key) ? `fact_${key}` : key,
      harmlessValue(key, value, depth_max),
    ]),
  );
}

function harmlessValue(key: string, value: unknown, depth: number): unknown {
  return secretKey.test(key) ? hidden : harmless(value, depth);
}

function harmless(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return withoutSecrets(value);
  if (typeof value === 'bigint') return value.toString();
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Error) return errorFacts(value, depth);
  if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes`;
  if (depth === 0) return '...';
  if (Array.isArray(value)) return value.map((item) => harmless(item, depth - 1));
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, harmlessValue(key, item, depth - 1)]),
  );
}

/** Errors of libraries carry whole requests with them, passwords included: only these fields are kept. */
function errorFacts(error: Error, depth: number): object {
  return {
    type: error.name,
    message: withoutSecrets(error.message),
    ...('code' in error ? { code: error.code } : {}),
    stack: withoutSecrets(error.stack ?? ''),
    ...(error.cause !== undefined && depth > 0 ? { cause: harmless(error.cause, depth - 1) } : {}),
  };
}
