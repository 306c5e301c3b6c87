import { type ChildProcess, spawn } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { stop } from "esbuild";
import { describe, expect, it, onTestFinished } from "vitest";
import { buildInService } from "../../runtime/bundle/build-service.ts";
import { folderOf } from "../tools/folder.ts";

/** Calls `heard` with each esbuild process that is started from now on. */
async function onService(heard: (service: ChildProcess) => void): Promise<void> {
  await stop();
  const hear = (message: unknown) => {
    const { process: child } = message as { process: ChildProcess };
    // The process is announced before it has a pid.
    setImmediate(() => child.spawnfile.includes("esbuild") && heard(child));
  };
  subscribe("child_process", hear);
  onTestFinished(() => void unsubscribe("child_process", hear));
}

/** The script built from one file. */
async function scriptOf({ handler }: { readonly handler: string }): Promise<string> {
  const { outputFiles } = await buildInService({ entryPoints: [handler], bundle: true, write: false, format: "esm" });
  return outputFiles[0]?.text ?? "";
}

const functionsOf = (count: number) => {
  const files = Array.from({ length: count }, (_, no) => [`f${no}.ts`, `export default () => ${no};`] as const);
  const folder = folderOf(Object.fromEntries(files));
  return files.map(([file]) => ({ handler: join(folder, file) }));
};

describe("the process that builds", () => {
  it("may end amid builds: each is made anew, and none is told of as a fault", async () => {
    let services = 0;
    await onService((service) => {
      if (++services === 1) service.kill("SIGTERM");
    });
    const scripts = await Promise.all(functionsOf(5).map((each) => scriptOf(each)));
    expect(scripts.map((script) => /=> \d/.exec(script)?.[0])).toEqual(["=> 0", "=> 1", "=> 2", "=> 3", "=> 4"]);
    expect(services).toBe(2);
  });

  it("may end between two builds: the next one starts it again", async () => {
    let latest: ChildProcess | undefined;
    await onService((service) => {
      latest = service;
    });
    const [first, second] = functionsOf(2);
    if (!first || !second) throw new Error("no functions");
    await scriptOf(first);
    const ended = once(latest as ChildProcess, "exit");
    latest?.kill("SIGKILL");
    await ended;
    expect(await scriptOf(second)).toContain("=> 1");
  });

  it("ends when nothing is built for a second, and the next build starts it again", async () => {
    const started: ChildProcess[] = [];
    await onService((service) => started.push(service));
    const [first, second] = functionsOf(2);
    if (!first || !second) throw new Error("no functions");
    await scriptOf(first);
    if (started[0]?.signalCode === null) await once(started[0], "exit");
    expect(await scriptOf(second)).toContain("=> 1");
    expect(started).toHaveLength(2);
  });

  it("that ends each time is told of by a code that is not the author's fault, and the next build is as any", async () => {
    let isDeadly = true;
    await onService((service) => isDeadly && service.kill("SIGKILL"));
    const [only] = functionsOf(1);
    if (!only) throw new Error("no function");
    await expect(scriptOf(only)).rejects.toMatchObject({ code: "WF_BUNDLE_BROKEN_OFF", blame: "system" });
    isDeadly = false;
    expect(await scriptOf(only)).toContain("=> 0");
  });

  it("says nothing when its parent leaves amid a build", async () => {
    const service = pathToFileURL(join(import.meta.dirname, "../../runtime/bundle/build-service.ts")).href;
    // The build and the ping of every second wait for an answer. Go reports a deadlock once no goroutine can answer.
    const leave = `
      import { buildInService } from ${JSON.stringify(service)};
      const endless = { name: "endless", setup: ({ onResolve }) => {
        onResolve({ filter: /^never$/ }, () => {
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1100);
          process.exit(3);
        });
      } };
      await buildInService({ stdin: { contents: 'import "never"' }, bundle: true, write: false, plugins: [endless] });`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", leave], { stdio: ["ignore", "pipe", "pipe"] });
    let said = "";
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (said += text));
    const [status] = await once(child, "close");
    expect({ status, said }).toEqual({ status: 3, said: "" });
  });
});
