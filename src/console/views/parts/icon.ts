/** Icons and the shapes of states, drawn once as symbols and used by name. */
import { own } from '../../json.ts';
import { html } from './html.ts';
import { icons } from './icons.ts';

export type Icon = keyof typeof icons;

/** Shapes of states: each differs by form, not by colour only. */
const shapes = {
  on: 'M8 0a8 8 0 1 0 0 16A8 8 0 0 0 8 0Zm3.6 5.2a1 1 0 0 1 .1 1.4l-4 4.8a1 1 0 0 1-1.5.1L4 9.3a1 1 0 1 1 1.4-1.4l1.4 1.4 3.3-4a1 1 0 0 1 1.5-.1Z',
  off: 'M8 0a8 8 0 1 0 0 16A8 8 0 0 0 8 0ZM5.7 4.3 8 6.6l2.3-2.3a1 1 0 1 1 1.4 1.4L9.4 8l2.3 2.3a1 1 0 1 1-1.4 1.4L8 9.4l-2.3 2.3a1 1 0 1 1-1.4-1.4L6.6 8 4.3 5.7a1 1 0 0 1 1.4-1.4Z',
  half: 'M8 0a8 8 0 1 0 0 16A8 8 0 0 0 8 0Zm0 2v12A6 6 0 0 1 8 2Z',
  ring: 'M8 0a8 8 0 1 0 0 16A8 8 0 0 0 8 0Zm0 2.2a5.8 5.8 0 1 1 0 11.6A5.8 5.8 0 0 1 8 2.2Z',
  warn: 'M9.5 1.9a1.7 1.7 0 0 0-3 0L.3 12.7A1.7 1.7 0 0 0 1.8 15.2h12.4a1.7 1.7 0 0 0 1.5-2.5ZM8 5a1 1 0 0 1 1 1v3a1 1 0 1 1-2 0V6a1 1 0 0 1 1-1Zm0 8.4a1.2 1.2 0 1 1 0-2.4 1.2 1.2 0 0 1 0 2.4Z',
};

export type Shape = keyof typeof shapes;

/** The symbols, hidden; to be drawn once, before their first use. */
export function symbols() {
  return html`<svg width="0" height="0" aria-hidden="true" class="unseen">
    <defs>
      ${Object.entries(icons).map(([name, d]) => html`<symbol key=${name} id=${`i-${name}`} viewBox="0 0 24 24"><path d=${d} /></symbol>`)}
      ${Object.entries(shapes).map(([name, d]) => html`<symbol key=${`s-${name}`} id=${`s-${name}`} viewBox="0 0 16 16"><path fill-rule="evenodd" d=${d} /></symbol>`)}
      <pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <path d="M0 0V6" class="hatch" />
      </pattern>
    </defs>
  </svg>`;
}

export function icon(name: Icon, size: 's' | 'l' | '' = '') {
  return html`<svg class=${`i ${size}`} aria-hidden="true"><use href=${`#i-${name}`} /></svg>`;
}

export function shape(name: Shape) {
  // Another one, so that a change is seen.
  return html`<svg key=${name} class="shape" aria-hidden="true"><use href=${`#s-${name}`} /></svg>`;
}

const ofTypes: Readonly<Record<string, Icon>> = {
  camera: 'cctv',
  drone: 'drone',
  radio: 'radio-tower',
  sensor: 'thermometer',
  vehicle: 'truck',
  gateway: 'server',
};
const ofLinks: Readonly<Record<string, Icon>> = {
  satellite: 'satellite-dish',
  cellular: 'signal',
  wifi: 'wifi',
  ethernet: 'ethernet-port',
};

/** @param type of an asset */
export function iconOfType(type: string): Icon {
  return own(ofTypes, type) ?? 'box';
}

/** @param type of a link */
export function iconOfLink(type: string | null | undefined): Icon {
  return own(ofLinks, type ?? '') ?? 'activity';
}
