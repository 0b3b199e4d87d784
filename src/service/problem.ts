/** Why a request is not served, as its client reads it (RFC 9457). */
import type { z } from 'zod';

export interface FieldFault {
  /** JSON pointer into the body, such as `#/lat`. */
  readonly pointer: string;
  readonly detail: string;
}

const titles = {
  'bad-request': [400, 'The request cannot be read'],
  unauthorised: [401, 'An API key is needed'],
  forbidden: [403, 'The API key may not do this'],
  'not-found': [404, 'There is no such thing'],
  'method-not-allowed': [405, 'This address does not know the method'],
  conflict: [409, 'The state of the thing does not allow it'],
  'too-large': [413, 'The body is too large'],
  'unsupported-type': [415, 'The body must be JSON'],
  'misdirected-request': [421, 'This host name is not served here'],
  'invalid-payload': [422, 'The body breaks its schema'],
  'too-many-requests': [429, 'Too many requests'],
  unavailable: [503, 'Not available now'],
} as const satisfies Readonly<Record<string, readonly [status: number, title: string]>>;
export type ProblemKind = keyof typeof titles;

interface More {
  readonly errors?: readonly FieldFault[];
  /** Seconds after which it makes sense to ask again. */
  readonly retry_after_s?: number;
  /** Methods that the address knows. */
  readonly allow?: readonly string[];
}

/** Thrown anywhere in the service; the server turns it into the answer. */
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

/** The faults of a body, each with the place where it is. */
export function fieldFaults(error: z.ZodError): readonly FieldFault[] {
  return error.issues.map(({ path, message }) => ({
    pointer: `#/${path.map((step) => escapePointer(String(step))).join('/')}`,
    detail: message,
  }));
}

/** RFC 6901, section 3. */
function escapePointer(step: string): string {
  return step.replaceAll('~', '~0').replaceAll('/', '~1');
}
