// An executor whose main thread is stuck: it writes once on descriptor 3, and does nothing more.
import { writeSync } from "node:fs";
import { endWithStarter } from "../../runtime/sandbox/executor/lifeline.ts";
import { lifelineArgument } from "../../runtime/sandbox/requirements.ts";

if (process.argv.includes(lifelineArgument)) await endWithStarter();
writeSync(3, "stuck");
for (;;);
