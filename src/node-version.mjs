// Ends the process with one clear line when Node is too old. Plain JavaScript without imports, so that an old Node can
// read it; it comes before SQLite, whose native part ends an old Node without a word.
const needed = 24;
const found = process.versions.node;

if (Number.parseInt(found, 10) < needed) {
  process.stderr.write(
    `kit-connector needs Node ${needed} or newer, this is Node ${found} (${process.execPath}); ` +
      'run "npm ci" once, which brings a fitting Node, and then "npm start" or "npx kit-connector"\n',
  );
  process.exit(1);
}
