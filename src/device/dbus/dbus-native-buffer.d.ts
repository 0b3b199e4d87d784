/** The reader of values of dbus-native; its own types do not name it. */
declare module 'dbus-native/lib/dbus-buffer.js' {
  interface SignatureTree {
    /** One character of a signature. */
    readonly type: string;
    readonly child: readonly SignatureTree[];
  }
  interface MessageBuffer {
    /** Reads one value of this type where the buffer stands. */
    readTree: (this: MessageBuffer, tree: SignatureTree) => unknown;
    /** Kept by our limits: values of this message so far, and how deep the current one is nested. */
    valuesRead?: number;
    depth?: number;
  }
  const DBusBuffer: { readonly prototype: MessageBuffer };
  export default DBusBuffer;
}
