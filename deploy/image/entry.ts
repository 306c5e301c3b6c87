#!/usr/local/bin/node
// The image's `watchfire`: its Node is the right one, so that there is nothing to hand over.
import { main } from "../../runtime/cli/main.ts";

process.title = "watchfire";
await main(process.argv.slice(2));
