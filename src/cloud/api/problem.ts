/** The reasons why a request is rejected, as the client reads them (RFC 9457). */
import type { z } from 'zod';

export interface FieldFault {
  /** JSON pointer into the body, such as `#/lat`. */
  readonly pointer: string;
  readonly detail: string;
}

export const titles = {
  'bad-request': [400, 'Bad request'],
  unauthorised: [401, 'A valid API key is required'],
  forbidden: [403, 'The API key lacks the permission'],
  'not-found': [404, 'Not found'],
  'link-forbids': [403, 'The kit sends no video over its link'],
  'method-not-allowed': [405, 'Method not allowed'],
  'not-playable': [406, 'The viewer cannot play this video'],
  conflict: [409, 'The current state does not allow it'],
  'precondition-failed': [412, 'It was changed meanwhile'],
  'too-large': [413, 'The body is too large'],
  'unsupported-type': [415, 'The type of the body is not supported'],
  'range-not-satisfiable': [416, 'The range is not in the file'],
  'misdirected-request': [421, 'This host name is not served'],
  'invalid-payload': [422, 'The body does not match its schema'],
  'out-of-range': [422, 'A parameter is out of range'],
  'upgrade-required': [426, 'A WebSocket handshake is required'],
  'too-many-requests': [429, 'Too many requests'],
  unavailable: [503, 'Service unavailable'],
  'no-answer': [504, 'The kit did not answer in time'],
} as const satisfies Readonly<Record<string, readonly [status: number, title: string]>>;
export type ProblemKind = keyof typeof titles;

interface More {
  readonly errors?: readonly FieldFault[];
  /** Seconds after which a retry makes sense. */
  readonly retry_after_s?: number;
  /** Methods that the path supports. */
  readonly allow?: readonly string[];
  /** Content codings that bodies may have (RFC 7694). */
  readonly codings?: string;
  /** Bytes of the file whose part was asked for. */
  readonly size?: number;
}

/** A rejected request. Thrown anywhere in the service; the server turns it into the response. */
export class RequestProblem extends Error {
  override readonly name = 'RequestProblem';
  readonly kind: ProblemKind;
  readonly more: More;

  constructor(kind: ProblemKind, detail: string, more: More = {}) {
    super(detail);
    this.kind = kind;
    this.more = more;
  }

  get status(): (typeof titles)[ProblemKind][0] {
    return titles[this.kind][0];
  }

  get title(): string {
    return titles[this.kind][1];
  }
}

/** The document of a problem; `instance` is the id of the request. */
export function problemDocument({ kind, status, title, message, more }: RequestProblem, instance: string) {
  const errors = more.errors && { errors: [...more.errors] };
  return { status, type: `/problems/${kind}`, title, detail: message, ...errors, instance };
}

/** Returns the faults of a body, each with its position. */
export function fieldFaults(error: z.ZodError): readonly FieldFault[] {
  return error.issues.map(({ path, message }) => ({
    // The whole body is `#`: `#/` names a key without characters (RFC 6901, sections 5 and 6).
    pointer: ['#', ...path.map((step) => escapePointer(String(step)))].join('/'),
    detail: message,
  }));
}

/** RFC 6901, section 3. */
export function escapePointer(step: string): string {
  return step.replaceAll('~', '~0').replaceAll('/', '~1');
}
