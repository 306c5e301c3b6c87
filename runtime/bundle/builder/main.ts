// The builder's process. The runtime starts it with an empty environment, and with the right to read only the functions, their
// packages and its own code. It builds one function at a time.
import { closeSync } from "node:fs";
import { Socket } from "node:net";
import { type AnswerHead, BuildFrameReader, type BuildRequest, packFault, writeFrames } from "../builder-wire.ts";
import { bundleFunction } from "./bundle-function.ts";
import { openEsbuild } from "./esbuild.ts";
import { Lookups } from "./lookups.ts";

/** The stream to the runtime. */
const descriptor = 3;
/** Limit of a request, in bytes. Most of it is the paths of linked packages. */
const requestLimit = 16 * 1024 * 1024;

// Ctrl-C reaches the whole process group; this process ends when its stream does.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);

// This program may have been read from standard input, which Node would keep open forever.
closeSync(0);

// Stacks are never shown here. esbuild's library captures four per build, and each look-up of a missing file captures one.
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
    // A failure here is not the function's: the runtime sees this process end.
    serve(JSON.parse(frame.toString("utf8")) as BuildRequest).catch(leave);
  },
);
stream.on("data", (chunk: Buffer) => requests.push(chunk));
// Sends the greeting.
writeFrames(stream, nothing);
