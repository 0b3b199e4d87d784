/** The last picture of a camera, large, where it has no video: asked for again while it is looked at. Without one: what stands instead. */
import { Component, type ComponentChildren } from 'preact';
import { clock } from '../../units.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';

interface Props {
  /** Of its route; undefined: the service has none. */
  readonly path: string | undefined;
  readonly title: string;
  readonly otherwise: ComponentChildren;
}

/** A camera is asked this often; the service asks it less often where it must. */
const every_ms = 10_000;

export class Still extends Component<Props, { src: string; time_ms: number }> {
  override state: { src: string; time_ms: number } = { src: '', time_ms: 0 };
  #timer: ReturnType<typeof setTimeout> | undefined;
  #unmounted = new AbortController();

  override componentDidMount() {
    void this.#ask();
  }

  override componentWillUnmount() {
    clearTimeout(this.#timer);
    this.#unmounted.abort();
  }

  async #ask() {
    const { path } = this.props;
    if (path === undefined) return;
    const { signal } = this.#unmounted;
    const isThere = document.hidden || (await this.#fetch(path, signal).catch(() => true));
    if (isThere && !signal.aborted) this.#timer = setTimeout(() => void this.#ask(), every_ms);
  }

  /** @returns whether there may be another: a service that is not the kit's own has none */
  async #fetch(path: string, signal: AbortSignal): Promise<boolean> {
    const response = await fetch(path, { headers: { 'X-Kit-Page': '1' }, signal });
    if (!response.ok) return response.status !== 404;
    // The policy of the page allows data, and no blobs.
    const reader = new FileReader();
    reader.addEventListener('load', () => {
      if (typeof reader.result !== 'string' || signal.aborted) return;
      this.setState({
        src: reader.result,
        time_ms: Date.parse(response.headers.get('last-modified') ?? ''),
      });
    });
    reader.readAsDataURL(await response.blob());
    return true;
  }

  override render() {
    const { src, time_ms } = this.state;
    const { title, otherwise } = this.props;
    if (src === '') return otherwise;
    return html`<figure class="still">
      <img src=${src} alt=${t.camera.stillOf(title)} />
      <figcaption class="video-tag">${t.camera.still(clock(time_ms, { isExact: true }))}</figcaption>
    </figure>`;
  }
}
