/** The log, as far as this room needs it. */
export interface ServiceLog {
  readonly info: (facts: object, sentence: string) => void;
  readonly warn: (facts: object, sentence: string) => void;
  readonly error: (facts: object, sentence: string) => void;
}
