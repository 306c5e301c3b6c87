// Reads its own memory usage while it may open no file, and then while it may. Prints the results.
import { closeSync, openSync } from "node:fs";
import { MemoryWatch } from "../../runtime/v8/resident-memory.ts";

const files: number[] = [];

function openAll(): void {
  try {
    for (;;) files.push(openSync("/dev/null", "r"));
  } catch {
    return;
  }
}

openAll();
const watch = new MemoryWatch(process.pid, Number.POSITIVE_INFINITY, () => {});
let looks = 0;
let without = 0;
// Runs as often as the watch checks, and slightly later, so that each turn follows a check.
setInterval(() => {
  looks++;
  if (looks === 3) {
    without = watch.peak;
    for (const file of files) closeSync(file);
  }
  if (looks <= 3 || watch.peak === 0) return;
  process.stdout.write(JSON.stringify({ without, behind: watch.peak > 0 }));
  process.exit();
}, 20);
