/** The part of npm onvif that it ships without declarations. */
declare module 'onvif/lib/utils.js' {
  export function parseSOAPString(
    xml: string,
    callback: (error: Error | null, body: unknown) => void,
    status?: number,
  ): void;
}
