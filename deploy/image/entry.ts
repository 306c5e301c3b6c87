#!/usr/local/bin/node --max-semi-space-size=16
// The image's `watchfire`: its Node is the right one, so that there is nothing to hand over.
import { setEngineFlags } from "../../runtime/v8/engine.ts";

// Process 1 of a container ignores a signal that it does not handle, and its pod takes the whole grace period to end.
process.on("SIGTERM", () => process.exit(143));
setEngineFlags();
process.title = "watchfire";
// Apart from this file, so that no module of the runtime takes itself for the program that was started.
const { main } = await import("../../runtime/cli/main.ts");
await main(process.argv.slice(2));
