/** The video of a camera, with its state written over it while it is not live. */
import { html } from '../parts/html.ts';
import { Component } from 'preact';
import { t } from '../../words/words.ts';
import { play, type VideoState } from '../../world/whep.ts';

export class Video extends Component<{ url: string; title: string }, VideoState> {
  override state: VideoState = { state: 'connecting', text: 'Connecting', frames: 0 };
  #video: HTMLVideoElement | null = null;
  #playing = new AbortController();
  #mounted = new AbortController();

  override componentDidMount() {
    document.addEventListener('visibilitychange', () => this.#follow(), { signal: this.#mounted.signal });
    this.#follow();
  }

  override componentWillUnmount() {
    this.#mounted.abort();
    this.#playing.abort();
  }

  /** Stops the stream while the page is hidden, to save the link. */
  #follow() {
    this.#playing.abort();
    if (document.hidden || !this.#video) return;
    this.#playing = new AbortController();
    const { signal } = this.#playing;
    void play(this.props.url, this.#video, {
      signal,
      onState: (state) => {
        if (!signal.aborted) this.setState(state);
      },
    });
  }

  #tap = () => void this.#video?.play().catch(() => undefined);

  override render() {
    const { state, text } = this.state;
    const keep = (element: HTMLVideoElement | null) => {
      this.#video = element;
    };
    return html`<div class=${`video ${state}`}>
      <video
        ref=${keep}
        muted
        autoplay
        playsinline
        onClick=${this.#tap}
        aria-label=${t.camera.videoOf(this.props.title)}
      ></video>
      <p role="status" class=${state === 'playing' ? 'rec' : ''}>${text}</p>
    </div>`;
  }
}
