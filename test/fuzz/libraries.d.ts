/** The codec of dbus-native; its own types do not name it. */
declare module 'dbus-native/lib/message.js' {
  interface MessageStream {
    readonly read: (bytes: number) => Buffer | null;
    readonly on: (event: string, listener: () => void) => unknown;
    readonly removeListener: (event: string, listener: () => void) => unknown;
  }
  export const unmarshalMessages: (
    ...args: [
      stream: MessageStream,
      onMessage: (message: { readonly body?: readonly unknown[] }) => void,
      options: object,
      onError: (error: Error) => void,
      onHandlerError: (error: Error) => void,
      takeFds: (count: number) => readonly number[],
    ]
  ) => void;
  export function marshall(message: object): Buffer;
}
