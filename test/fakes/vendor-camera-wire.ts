/** The shapes of the vendor's replies. */

export type FakeReply = Readonly<Record<string, unknown>>;

export interface FakeCommand {
  readonly cmd: string;
  readonly param?: Readonly<Record<string, unknown>>;
}

export function okReply(cmd: string, value: unknown): FakeReply {
  return { cmd, code: 0, value };
}

export function errorReply(cmd: string, rspCode: number, detail = ''): FakeReply {
  return { cmd, code: 1, error: { detail, rspCode } };
}
