/** The reader of values of dbus-native; its own types do not name it. */
declare module 'dbus-native/lib/dbus-buffer.js' {
  interface SignatureTree {
    /** One character of a signature. */
    readonly type: string;
    readonly child: readonly SignatureTree[];
  }
  const DBusBuffer: {
    readonly prototype: {
      /** Reads one value of this type where the buffer stands. */
      readTree: (tree: SignatureTree) => unknown;
    };
  };
  export default DBusBuffer;
}
