/**
 * Limits of what dbus-native reads from one message, which goes through in one turn of the event loop: the number of values,
 * and how deep they are nested. A container without members uses no bytes, so that an array of them would never end; no bus may
 * pass on such a signature (D-Bus specification, "Container types"). Has to be loaded before a connection is made.
 */
import DBusBuffer from 'dbus-native/lib/dbus-buffer.js';
import { texts } from './texts.ts';

/** The state of eight modems in ModemManager has fewer than half as many. */
const values_max = 40_000;
/** The limit of the specification. */
const depth_max = 64;
/** Structures and entries of dictionaries; `r` names the first in some signatures. */
const containers: ReadonlySet<string> = new Set(['(', '{', 'r']);
const { readTree } = DBusBuffer.prototype;

// Each message has a separate buffer.
DBusBuffer.prototype.readTree = function readLimited(tree) {
  if (containers.has(tree.type) && tree.child.length === 0) {
    throw new Error(texts.empty_container(tree.type));
  }
  this.valuesRead = (this.valuesRead ?? 0) + 1;
  if (this.valuesRead > values_max) throw new Error(texts.too_many_values(values_max));
  this.depth = (this.depth ?? 0) + 1;
  if (this.depth > depth_max) throw new Error(texts.nested_too_deeply(depth_max));
  const value = readTree.call(this, tree);
  this.depth -= 1;
  return value;
};
