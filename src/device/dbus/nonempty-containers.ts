/**
 * dbus-native reads arrays until their bytes are used up. A container without members uses none, so that one message with an
 * array of them would keep this process busy until its memory is full. No bus may pass on such a signature (D-Bus
 * specification, "Container types"); here it makes the message unreadable. Has to be loaded before a connection is made.
 */
import DBusBuffer from 'dbus-native/lib/dbus-buffer.js';

/** Structures and entries of dictionaries; `r` names the first in some signatures. */
const containers: ReadonlySet<string> = new Set(['(', '{', 'r']);
const { readTree } = DBusBuffer.prototype;

DBusBuffer.prototype.readTree = function readNonempty(tree) {
  if (containers.has(tree.type) && tree.child.length === 0) {
    throw new Error(`signature has a container without members (${tree.type})`);
  }
  return readTree.call(this, tree);
};
