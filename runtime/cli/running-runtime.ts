import { readEnvironment } from "../base/config.ts";
import { WatchfireError } from "../base/errors.ts";
import { clean } from "../base/wording.ts";
import { readAddress } from "../observe/address-file.ts";
import { readToken } from "../observe/token-file.ts";
import { data } from "./options.ts";
import { RuntimeClient } from "./runtime-client.ts";

/** The options of a command that contacts a running runtime. */
export const runtimeOptions = {
  data: {
    value: "DIR",
    summary: "the running runtime's data folder, which says where it answers; with --url, for its token",
    default: data.default,
  },
  url: { value: "URL", summary: "where a runtime answers, such as http://127.0.0.1:9464" },
} as const;

interface RuntimeRequest {
  readonly options: { readonly data: string; readonly url: string | undefined };
  readonly given: ReadonlySet<string>;
}

/** Returns the addressed runtime. @throws WatchfireError WF_CLI_UNREACHABLE if the data folder has no address */
export function runningRuntime({ options: { data: named, url }, given }: RuntimeRequest): RuntimeClient {
  const folder = given.has("data") ? named : (readEnvironment().dataFolder ?? named);
  return new RuntimeClient(url ?? addressOf(folder), readToken(folder));
}

function addressOf(folder: string): string {
  const url = readAddress(folder);
  if (url !== undefined) return url;
  throw new WatchfireError("WF_CLI_UNREACHABLE", {
    what: "no runtime has said in this data folder where it answers",
    actual: folder,
    hint: "start one, or name its data folder with --data, or its address with --url",
  });
}

/** Returns the one function that a command is for. @throws WatchfireError WF_CLI_USAGE */
export function functionOperand(command: string, operands: readonly string[]): string {
  const [name, ...more] = operands;
  if (name !== undefined && name !== "" && more.length === 0) return name;
  throw new WatchfireError("WF_CLI_USAGE", {
    what: `${command} takes one FUNCTION`,
    actual: operands.join(" ") || undefined,
    hint: `such as \`watchfire ${command} greet\``,
  });
}

/** Returns the path of a function's endpoints. */
export const functionPath = (name: string, rest: string): string => `functions/${encodeURIComponent(name)}/${rest}`;

/** Writes to stderr where the function's other shards are, which the answer does not cover. */
export function tellElsewhere({ elsewhere }: { readonly elsewhere?: string | undefined }): void {
  if (elsewhere !== undefined) process.stderr.write(`this covers only the shards here: ${clean(elsewhere)}\n`);
}
