import type { ChildProcess } from "node:child_process";
import type { Socket } from "node:net";
import type { Clock } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { MemoryWatch } from "../v8/resident-memory.ts";
import { answerLimits, faultOf, readHead } from "./builder-answer.ts";
import { startBuilder } from "./builder-program.ts";
import { BuildFrameReader, writeFrames } from "./builder-wire.ts";
import type { Bundle } from "./bundle.ts";
import { buildMs, memoryLimit, startMs } from "./limits.ts";
import type { Project } from "./project.ts";
import { bundleOf } from "./script-bundle.ts";
import { displayPath } from "./source-path.ts";

/** A builder ended during a build without having been asked to. */
export class BuilderEnded extends Error {}

interface PendingBuild {
  readonly handler: string;
  readonly frames: Buffer[];
  readonly settled: PromiseWithResolvers<Bundle>;
}

/**
 * One builder: a process that builds one function at a time. It is killed, together with esbuild's process, if a build exceeds a
 * limit.
 */
export class BuilderProcess {
  private readonly project: Project;
  private readonly clock: Clock;
  private readonly processes: readonly ChildProcess[];
  private readonly stream: Socket;
  private readonly watches: readonly MemoryWatch[];
  private readonly ready = Promise.withResolvers<void>();
  private readonly reader: BuildFrameReader;
  private build: PendingBuild | undefined;
  private over = false;

  constructor(project: Project, clock: Clock) {
    this.project = project;
    this.clock = clock;
    const { node, esbuild } = startBuilder(project);
    this.processes = [node, esbuild];
    this.stream = node.stdio[3] as Socket;
    this.watches = this.processes.map(
      ({ pid }) => new MemoryWatch(pid, memoryLimit, (detail) => this.exceed(`memory: ${detail}`)),
    );
    // The first frame is a greeting, the others belong to answers.
    const limit = (index: number) => (index === 0 ? 0 : (answerLimits[(index - 1) % answerLimits.length] ?? 0));
    this.reader = new BuildFrameReader(limit, (frame, index) => this.hear(frame, index));
    this.stream.on("data", (chunk: Buffer) => this.receive(chunk));
    this.stream.on("error", () => this.end(new BuilderEnded("its stream broke")));
    for (const child of this.processes) {
      child.on("error", (error) => this.end(new BuilderEnded(error.message)));
      child.on("exit", (code, signal) => this.end(new BuilderEnded(signal ?? `status ${code}`)));
      child.unref();
    }
    this.ready.promise.catch(() => undefined); // the caller of `bundle` gets the error
    this.hold(false);
  }

  get isOver(): boolean {
    return this.over;
  }

  /**
   * Builds a handler. Must not be called before the previous build has ended.
   * @throws WatchfireError of the bundle section
   * @throws BuilderEnded if its process ended
   */
  async bundle(handler: string, signal?: AbortSignal): Promise<Bundle> {
    const build: PendingBuild = { handler, frames: [], settled: Promise.withResolvers() };
    this.build = build;
    const abort = () => this.end(signal?.reason);
    signal?.addEventListener("abort", abort, { once: true });
    this.hold(true);
    let timer = this.clock.after(startMs, () => this.end(new BuilderEnded(`no answer within ${startMs / 1000} s`)));
    try {
      signal?.throwIfAborted();
      build.settled.promise.catch(() => undefined); // it may end before it is ready
      await this.ready.promise;
      timer.cancel();
      timer = this.clock.after(buildMs, () => this.exceed(`time: more than ${buildMs / 1000} s`));
      const request = { ...this.project, handler, workingFolder: process.cwd() };
      writeFrames(this.stream, Buffer.from(JSON.stringify(request)));
      return await build.settled.promise;
    } finally {
      timer.cancel();
      signal?.removeEventListener("abort", abort);
      this.build = undefined;
      this.hold(false);
    }
  }

  close(): void {
    this.end(new BuilderEnded("it was closed"));
  }

  /** Sets whether this process keeps the runtime's process alive. */
  private hold(isHeld: boolean): void {
    this.stream[isHeld ? "ref" : "unref"]();
  }

  private receive(chunk: Buffer): void {
    try {
      this.reader.push(chunk);
    } catch (error) {
      this.end(new BuilderEnded(`it cannot be understood: ${(error as Error).message}`));
    }
  }

  private hear(frame: Buffer, index: number): void {
    if (index === 0) this.ready.resolve();
    else this.hearAnswer(frame);
  }

  private hearAnswer(frame: Buffer): void {
    const { build } = this;
    if (!build) throw new RangeError("an answer to nothing");
    build.frames.push(frame);
    const [head, script, map] = build.frames;
    if (!head || !script || !map) return;
    const answer = readHead(head);
    if (answer.type === "refused") build.settled.reject(faultOf(answer.faults));
    else build.settled.resolve(bundleOf(script.toString("utf8"), map.toString("utf8"), answer.inputs));
  }

  private exceed(what: string): void {
    const file = displayPath(this.build?.handler ?? "", process.cwd());
    this.end(new WatchfireError("WF_BUNDLE_LIMIT", { what: `the build was ended for its ${what}`, place: { file } }));
  }

  private end(reason: unknown): void {
    if (this.over) return;
    this.over = true;
    for (const watch of this.watches) watch.stop();
    for (const child of this.processes) child.kill("SIGKILL");
    this.stream.destroy();
    this.ready.reject(reason);
    this.build?.settled.reject(reason);
  }
}
