// A parent that will be killed: prints the pid of an executor that is stuck. `thread`: as on a platform without setpriv.
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { Confinement } from "../../runtime/sandbox/confinement.ts";
import { spawnExecutor } from "../../runtime/sandbox/executor-program.ts";

const walls =
  process.argv[2] === "thread" ? new Confinement([process.execPath], []) : new Confinement([process.execPath]);
const program = { flags: [], args: [join(import.meta.dirname, "stuck.program.ts")] };
const child = spawnExecutor(program, "pipe", walls);
(child.stdio[3] as Duplex).once("data", () => process.stdout.write(`${child.pid} ${walls.rights.endsWithStarter}\n`));
