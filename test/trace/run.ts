// npm run trace [-- event|reconcile] [--all | --json]: prints the number of the parent's files and functions that one change
// passes, by room.
import { parseArgs } from "node:util";
import { type Trace, trace, traced } from "./trace.ts";

const options = { all: { type: "boolean" }, json: { type: "boolean" } } as const;
const { values, positionals } = parseArgs({ allowPositionals: true, options });
const print = (line: string) => process.stdout.write(`${line}\n`);

for (const kind of traced.filter((each) => positionals.length === 0 || positionals.includes(each))) {
  const found = await trace(kind);
  if (values.json) print(JSON.stringify({ kind, files: found.files.size, functions: found.calls.size }));
  else printTable(kind, found);
}

function printTable(kind: string, { calls, files }: Trace): void {
  const roomOf = (path: string): string => path.split("/").slice(0, -1).slice(0, 3).join("/");
  const sumOf = (counts: readonly (readonly [string, number])[]) => counts.reduce((sum, [, count]) => sum + count, 0);
  print(`one ${kind}: ${files.size} files, ${calls.size} functions, ${sumOf([...calls])} calls`);
  const rooms = [...Map.groupBy(calls, ([name]) => roomOf(name))].toSorted(([, a], [, b]) => b.length - a.length);
  for (const [room, functions] of rooms) {
    const inRoom = [...files].filter((file) => roomOf(file) === room).length;
    print(`  ${room.padEnd(28)} ${inRoom} files, ${functions.length} functions, ${sumOf(functions)} calls`);
  }
  if (values.all) for (const [name, count] of [...calls].toSorted()) print(`${count}\t${name}`);
}
