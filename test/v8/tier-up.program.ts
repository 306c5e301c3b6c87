// Calls a function 10,000 times with idle time in between, and then 10,000 times without. V8 prints what it compiles.
import { CompilerPacing } from "../../runtime/v8/compiler-pacing.ts";

function hot(value: number): number {
  let sum = 0;
  for (const each of [value, value + 1, value + 2, value + 3]) sum += each % 7;
  return sum;
}

/** Each call runs in a separate turn of the event loop, so that no loop around it is optimised. */
async function callOften(): Promise<void> {
  for (let call = 0; call < 10_000; call++) await Promise.resolve(call).then(hot);
}

const tierUp = new CompilerPacing();
await callOften();
process.stdout.write("busy\n");
tierUp.look(true);
await callOften();
