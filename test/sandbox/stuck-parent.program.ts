// A parent that the test kills. Prints the pid of an executor whose main thread is stuck. `thread`: without setpriv, as on other
// platforms.
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { Confinement } from "../../runtime/sandbox/confinement.ts";
import { spawnExecutor } from "../../runtime/sandbox/executor-program.ts";

const walls =
  process.argv[2] === "thread" ? new Confinement([process.execPath], []) : new Confinement([process.execPath]);
const program = { flags: [], args: [join(import.meta.dirname, "stuck.program.ts")] };
const child = spawnExecutor(program, "pipe", walls);
(child.stdio[3] as Duplex).once("data", () => process.stdout.write(`${child.pid} ${walls.rights.endsWithStarter}\n`));
