#!/usr/local/bin/node --max-semi-space-size=16
// Entry of the image's `watchfire`. Its Node has the right version, so no other one has to be started.
import { setEngineFlags } from "../../runtime/v8/engine.ts";

// Process 1 of a container ignores a signal that it does not handle, and its pod takes the whole grace period to end.
process.on("SIGTERM", () => process.exit(143));
setEngineFlags();
process.title = "watchfire";
// Imported dynamically, so that no module of the runtime takes itself for the main program.
const { main } = await import("../../runtime/cli/main.ts");
await main(process.argv.slice(2));
