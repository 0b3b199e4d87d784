/** The artificial horizon. */
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';

/** Units of the picture for one degree of pitch. */
const per_degree = 1.5;

/** @param attitude degrees; pitch positive: nose up */
export function horizon({
  roll,
  pitch,
  isOld,
}: {
  readonly roll: number;
  readonly pitch: number;
  readonly isOld: boolean;
}) {
  const shown = Math.max(-40, Math.min(40, pitch));
  return html`<svg
    class=${isOld ? 'horizon old' : 'horizon'}
    viewBox="-50 -50 100 100"
    role="img"
    aria-label=${t.drone.attitude({ roll: Math.round(roll), pitch: Math.round(pitch) })}
  >
    <defs>
      <clipPath id="horizon-clip"><circle r="46" /></clipPath>
    </defs>
    <g clip-path="url(#horizon-clip)">
      <g transform=${`rotate(${(-roll).toFixed(1)}) translate(0 ${(shown * per_degree).toFixed(1)})`}>
        <rect class="sky" x="-100" y="-160" width="200" height="160" />
        <rect class="earth" x="-100" width="200" height="160" />
        <path class="line" d="M-100 0H100" />
        ${[-20, -10, 10, 20].map((degrees) => html`<path key=${degrees} class="bar-line" d=${`M${degrees % 20 === 0 ? -15 : -9} ${-degrees * per_degree}h${degrees % 20 === 0 ? 30 : 18}`} />`)}
      </g>
    </g>
    <circle class="rim" r="46" />
    <path class="wings-edge" d="M-26 0H-11L-6 6M26 0H11L6 6" />
    <path class="wings" d="M-26 0H-11L-6 6M26 0H11L6 6" />
    <circle class="dot" r="2.6" />
    <path class="roll" d="M0-46l4.5 8h-9Z" transform=${`rotate(${(-roll).toFixed(1)})`} />
  </svg>`;
}
