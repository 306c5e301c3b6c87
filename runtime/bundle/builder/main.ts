// The builder's process. The runtime starts it with an empty environment, and the right to read the functions, their
// packages and its own code, and nothing else. It builds one function at a time.
import { closeSync } from "node:fs";
import { Socket } from "node:net";
import { type AnswerHead, BuildFrameReader, type BuildRequest, packFault, writeFrames } from "../builder-wire.ts";
import { bundleFunction } from "./bundle-function.ts";
import { openEsbuild } from "./esbuild.ts";
import { Lookups } from "./lookups.ts";

/** The stream to the runtime. */
const descriptor = 3;
/** Of a request: the paths of some linked packages. */
const requestLimit = 16 * 1024 * 1024;

// Ctrl-C reaches the whole group: this process ends when its stream does.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);

// This program may have come by the standard input; Node would keep it open for ever.
closeSync(0);

// Nobody reads a stack here. esbuild's library takes four in each build, and each look for a file that is not there takes one.
Error.stackTraceLimit = 0;

const leave = (): never => process.exit(1);
openEsbuild(leave);
const stream = new Socket({ fd: descriptor });
stream.on("error", leave);
stream.on("close", leave);

const nothing = Buffer.alloc(0);
const lookups = new Lookups();

function answer(head: AnswerHead, script: Uint8Array = nothing, sourceMap: Uint8Array = nothing): void {
  writeFrames(stream, Buffer.from(JSON.stringify(head)), script, sourceMap);
}

async function serve(request: BuildRequest): Promise<void> {
  const bundled = await bundleFunction(request, lookups);
  if (bundled.type === "refused") return answer({ type: "refused", faults: bundled.faults.map(packFault) });
  const { script, sourceMap, inputs } = bundled;
  answer({ type: "built", inputs: [...inputs] }, Buffer.from(script), Buffer.from(sourceMap));
}

const requests = new BuildFrameReader(
  () => requestLimit,
  (frame) => {
    // What goes wrong here is no fault of the function's: the runtime sees this process end.
    serve(JSON.parse(frame.toString("utf8")) as BuildRequest).catch(leave);
  },
);
stream.on("data", (chunk: Buffer) => requests.push(chunk));
// A greeting.
writeFrames(stream, nothing);
