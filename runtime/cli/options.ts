import { runtimeAccount } from "../access/account.ts";
import type { Option } from "./command.ts";

// Options of several commands, each with one name, one meaning and one default.

export const functions = {
  value: "DIR",
  summary: "the functions folder",
  default: "functions",
} as const satisfies Option;

export const data = {
  value: "DIR",
  summary: "the data folder: checkpoints, waiting events, dead letters",
  default: ".watchfire",
} as const satisfies Option;

/** Format of a command's output: `text` for people, or one of the formats for programs. */
export const output = <const F extends readonly string[]>(...formats: F) =>
  ({
    value: "FORMAT",
    short: "o",
    choices: ["text", ...formats],
    summary: `the format of the output: ${["text", ...formats].join(", ")}`,
    default: "text",
  }) as const satisfies Option;

/** The same rule for all commands that need a cluster. */
export const kubeconfig = {
  value: "FILE",
  summary: "the kubeconfig; default: KUBECONFIG, then ~/.kube/config, then the pod's account",
} as const satisfies Option;

export const real = {
  summary: "uses a real kube-apiserver and etcd, those of KUBEBUILDER_ASSETS, instead of the embedded cluster",
} as const satisfies Option;

export const serviceAccount = {
  value: "NAME",
  summary: "the runtime's ServiceAccount; a function's is NAME-<function>, in the same namespace",
  default: runtimeAccount,
} as const satisfies Option;

/** 9464 is the port of OpenTelemetry's Prometheus exporters. */
const port = "9464";

export const loopback = "127.0.0.1";

export const endpointsPort = {
  value: "N",
  summary: `the port of /status and the other endpoints on ${loopback}; without this option one of the next 20 if it is in use`,
  default: port,
} as const satisfies Option;

export const listen = {
  value: "HOST:PORT",
  summary: "serves /livez, /readyz, /metrics, /status",
  default: `${loopback}:${port}`,
} as const satisfies Option;

export const historySize = {
  value: "SIZE",
  summary: "disk that the history of runs, their calls and log lines may take; 0: no history",
  default: "64Mi",
} as const satisfies Option;

export const historyAge = {
  value: "DURATION",
  summary: "how long the history keeps a run",
  default: "7d",
} as const satisfies Option;

/** Default folder of the types of custom resources. */
export const typesFolder = "types";
