/** The shapes of the vendor's replies. */

export type SimReply = Readonly<Record<string, unknown>>;

export interface SimCommand {
  readonly cmd: string;
  readonly param?: Readonly<Record<string, unknown>> | undefined;
}

export function okReply(cmd: string, value: unknown): SimReply {
  return { cmd, code: 0, value };
}

export function errorReply(cmd: string, rspCode: number, detail = ''): SimReply {
  return { cmd, code: 1, error: { detail, rspCode } };
}
