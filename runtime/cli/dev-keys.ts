import { systemClock } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { openBrowser } from "../dev/browser.ts";
import type { Key } from "../dev/keys.ts";
import { emitSamples } from "../dev/samples.ts";
import type { Host } from "../host/host.ts";
import { Discovery } from "../kube/discovery.ts";
import type { KubeTransport } from "../kube/transport.ts";
import type { RunsAnswer } from "../observe/control-api.ts";

interface DevKeysParts {
  readonly runtime: Host;
  readonly folder: string;
  readonly transport: KubeTransport;
  readonly namespace: string;
  /** True if samples can be applied, because the cluster is the embedded one. */
  readonly hasSamples: boolean;
  readonly hasConsole: boolean;
  readonly say: (text: string) => void;
  readonly quit: () => void;
}

/** The keys of `watchfire dev`. */
export function devKeys(parts: DevKeysParts): readonly Key[] {
  const { hasSamples, hasConsole, quit } = parts;
  const warnings = new Set<string>();
  return [
    { key: "r", does: "replay the last event", act: () => replayLast(parts) },
    ...(hasSamples ? [{ key: "e", does: "emit the samples", act: () => emit(parts, warnings) }] : []),
    { key: "p", does: "pause or resume", act: () => togglePause(parts) },
    { key: "b", does: "show the rbac", act: () => showRbac(parts) },
    ...(hasConsole ? [{ key: "o", does: "open the console", act: () => openConsole(parts) }] : []),
    { key: "q", does: "quit", act: quit },
  ];
}

type NamedRun = RunsAnswer["runs"][number] & { readonly function: string };

/** Delivers the last event again: unchanged or, if its object has changed since, in the present state. */
async function replayLast({ runtime, say }: DevKeysParts): Promise<void> {
  const { desk } = runtime;
  let last: NamedRun | undefined;
  for (const { name } of runtime.functions) {
    const [run] = (await desk.runs(name)).runs;
    if (run && (!last || run.at > last.at)) last = { ...run, function: name };
  }
  if (!last) return say("replay: nothing has run yet");
  const { function: name, id, type, kind, object } = last;
  say(`replay: ${name} ${type} ${kind} ${object}`);
  try {
    await desk.redeliver(name, { run: id });
  } catch (error) {
    if (!(error instanceof WatchfireError) || error.code !== "WF_RUNTIME_NOT_REDELIVERED") throw error;
    const [namespace = "", of] = object.includes("/") ? object.split("/") : ["", object];
    await desk.redeliver(name, { object: { namespace, name: of ?? "" } });
  }
}

/** @param warnings texts of the API server that were shown; each is shown once */
async function emit({ runtime, transport, say }: DevKeysParts, warnings: Set<string>): Promise<void> {
  const manifests = runtime.functions.map(({ file }) => file);
  const discovery = new Discovery(transport, systemClock);
  const warned = (text: string, place: string) => {
    if (!warnings.has(text)) say(`emit: the API server warns of ${place}: ${text}`);
    warnings.add(text);
  };
  const emitted = await emitSamples(manifests, transport, discovery, new Date().toISOString(), warned);
  say(emitted.length === 0 ? "emit: there is no sample.yaml next to a function" : `emit: ${emitted.join(", ")}`);
}

/** Prints the link if no browser can be started. */
async function openConsole({ runtime, say }: DevKeysParts): Promise<void> {
  const link = runtime.loginLink() ?? "";
  say((await openBrowser(link)) ? "console: opened in the browser" : `console: ${link}`);
}

/** Resumes all functions if one of them was paused, otherwise pauses all. */
async function togglePause({ runtime, say }: DevKeysParts): Promise<void> {
  const { desk } = runtime;
  const reports = runtime.status().functions;
  const isPaused = reports.some(({ paused }) => paused === "command");
  for (const { name } of reports) {
    try {
      say((await desk[isPaused ? "resume" : "pause"](name)).says);
    } catch (error) {
      say(error instanceof Error ? error.message : String(error));
    }
  }
}

async function showRbac({ runtime, folder, transport, namespace, say }: DevKeysParts): Promise<void> {
  const { rbacText } = await import("./rbac.ts");
  say(await rbacText(folder, runtime.functions, transport, namespace));
}
