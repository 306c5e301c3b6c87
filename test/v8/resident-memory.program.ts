// Looks at its own memory where it may open no file, and then where it may. Says what was seen.
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
// As often as the watch looks, and set behind it: each turn comes after one of its looks.
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
