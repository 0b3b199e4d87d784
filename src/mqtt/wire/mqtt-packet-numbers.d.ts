/** The part of mqtt-packet that encodes numbers; its own types do not name it. */
declare module 'mqtt-packet/numbers.js' {
  const numbers: {
    /** A Variable Byte Integer; empty where it needs more than four bytes. */
    genBufVariableByteInt: (number: number) => Buffer;
  };
  export default numbers;
}
