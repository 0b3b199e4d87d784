/** Content that is drawn again only when what it shows has changed: most rows of a long list are as they were a moment ago. */
import { Component } from '../../preact.js';

/** @import { ComponentChildren } from '../../preact.js' */

/** @typedef {{ readonly by: string, readonly draw: () => ComponentChildren }} Props */

/**
 * `by`: everything that the content depends on, as one text. It must have no handlers that depend on more.
 * @extends {Component<Props, {}>}
 */
export class Steady extends Component {
  /**
   * @override
   * @param {Props} next
   */
  shouldComponentUpdate(next) {
    return next.by !== this.props.by;
  }

  /** @override */
  render() {
    return this.props.draw();
  }
}
