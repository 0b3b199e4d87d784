/** The library as the service serves it beside the page's own modules. */
import type { h, VNode } from 'preact';

type Html = (strings: TemplateStringsArray, ...values: readonly unknown[]) => VNode;

declare const htm: { readonly bind: (create: typeof h) => Html };
export { htm as default };
