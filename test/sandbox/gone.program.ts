// Reads the CPU time of isolates continuously while each reaches its memory limit. Prints the number of isolates of which it
// could read some.
import ivm from "isolated-vm";
import { cpuMsOf, disposeOf } from "../../runtime/sandbox/executor/isolate.ts";

let read = 0;
for (let made = 0; made < 20; made++) {
  const isolate = new ivm.Isolate({ memoryLimit: 8 });
  const script = isolate.compileScriptSync("const kept = []; for (;;) kept.push(new Array(1e4).fill(1.5));");
  let running = true;
  let most = 0;
  const look = () => {
    for (let times = 0; times < 500; times++) most = Math.max(most, cpuMsOf(isolate));
    if (running) setImmediate(look);
  };
  look();
  await script.run(isolate.createContextSync()).catch(() => undefined);
  running = false;
  disposeOf(isolate);
  if (most > 0 && cpuMsOf(isolate) === 0) read++;
}
process.stdout.write(JSON.stringify(read));
process.exit(0);
