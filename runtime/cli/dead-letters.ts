import { readEnvironment } from "../base/config.ts";
import { WatchfireError } from "../base/errors.ts";
import { clean } from "../base/wording.ts";
import { tableOfTexts } from "../dev/table.ts";
import { deadLetterPageSize } from "../journal/checkpoint.ts";
import { reasonOf, type WaitingReplay } from "../journal/dead-letters.ts";
import { type DeadLetterRow, deadLetterId } from "../observe/dead-letter.ts";
import { readToken } from "../observe/token-file.ts";
import { command, type Invocation } from "./command.ts";
import { clientOf, type DeadLetterClient, openFolder, openRuntime } from "./dead-letter-client.ts";
import { data, output } from "./options.ts";
import { clusterRuntimeOptions, isInCluster, readReason, reasonOption, withRuntime } from "./running-runtime.ts";

const options = {
  data: {
    value: "DIR",
    summary: "the data folder of a stopped or running runtime, which has its token",
    default: data.default,
  },
  url: {
    value: "URL",
    summary: "the URL of a runtime, such as http://127.0.0.1:9464; default: the one in its data folder",
  },
  ...clusterRuntimeOptions,
  ...reasonOption,
  function: { value: "NAME", summary: "for list and --all: only this function's" },
  all: { summary: "for replay and drop: all of them; those that cannot be replayed are reported and kept" },
  output: output("json"),
  after: { value: "ID", summary: `for list: those after this one; a list has at most ${deadLetterPageSize}` },
} as const;

/** Maximum number of ids in one command, as at the endpoints. */
const mostIds = 1000;

export const deadLetters = command({
  name: "dead-letters",
  summary: "lists, shows, replays and drops events that were given up",
  operands: "list | show ID | replay ID... | drop ID...",
  options,
  async run(invocation) {
    const action = actionOf(invocation);
    if (isInCluster(invocation)) {
      return withRuntime(invocation, (runtime) => action(clientOf(runtime)));
    }
    const { url, data, reason: given } = invocation.options;
    const reason = readReason(given);
    const folder = invocation.given.has("data") ? data : (readEnvironment().dataFolder ?? data);
    const client = url === undefined ? openFolder(folder, reason) : openRuntime(url, readToken(folder), reason);
    try {
      return await action(client);
    } finally {
      await client.close();
    }
  },
});

type Action = (client: DeadLetterClient) => Promise<number>;

/** @throws WatchfireError WF_CLI_USAGE for invalid combinations of arguments */
function actionOf({ operands, options: values, given }: Invocation<typeof options>): Action {
  const [name, ...ids] = operands;
  const { after, function: only, output: format } = values;
  const all = given.has("all");
  if (given.has("after") && name !== "list") throw usage("--after is for list");
  if (given.has("output") && name === "show") throw usage("--output is for list, replay and drop; show prints JSON");
  if (after !== undefined && !deadLetterId.test(after))
    throw usage("--after takes a dead letter's id", undefined, after);
  if (only !== undefined && name !== "list" && !all) throw usage("--function is for list and --all");
  const isJson = format === "json";
  switch (name) {
    case "list":
      if (ids.length > 0 || all) throw usage("list takes no ID and no --all", undefined, ids.join(" ") || undefined);
      return (client) => list(client, { after, function: only }, isJson);
    case "show":
      if (ids.length !== 1 || all) throw usage("show takes one ID", undefined, ids.join(" ") || undefined);
      return (client) => show(client, ids[0] ?? "");
    case "replay":
    case "drop":
      if (all && ids.length > 0) throw usage(`${name} takes IDs or --all, not both`, undefined, ids.join(" "));
      if (all) return (client) => settleAll(client, name, only, isJson);
      if (ids.length > 0 && ids.length <= mostIds) return (client) => settle(client, name, ids, isJson);
      throw usage(`${name} takes 1 to ${mostIds} IDs, or --all`, undefined, ids.length);
    default:
      throw usage("dead-letters takes list, show, replay or drop", undefined, name);
  }
}

const usage = (what: string, hint = "run `watchfire dead-letters --help`", actual?: unknown): WatchfireError =>
  new WatchfireError("WF_CLI_USAGE", { what, hint, actual });

async function list(
  client: DeadLetterClient,
  page: { after: string | undefined; function: string | undefined },
  isJson: boolean,
) {
  const letters = await client.list(page);
  const of = page.function === undefined ? "" : ` of function ${page.function}`;
  const text = letters.length === 0 ? `no dead letters${of}` : rows(letters).join("\n");
  process.stdout.write(`${isJson ? JSON.stringify(letters, null, 2) : text}\n`);
  await reportOthers(client);
  return 0;
}

async function reportOthers(client: DeadLetterClient): Promise<void> {
  const others = await client.others();
  if (others !== undefined) process.stderr.write(`${others}\n`);
}

function rows(letters: readonly DeadLetterRow[]): string[] {
  const lines = tableOfTexts(
    columns,
    letters.map((letter) => [
      letter.id,
      letter.function,
      letter.type,
      `${letter.kind} ${letter.namespace ? `${letter.namespace}/` : ""}${letter.name}`,
      letter.bodyDropped ? "dropped" : "kept",
      String(letter.attempts),
      letter.failedAt,
      `${letter.error.code ?? letter.error.name}: ${letter.error.message}`,
    ]),
    columns.length - 1,
  );
  if (letters.length === deadLetterPageSize) lines.push(`there may be more: list --after ${letters.at(-1)?.id}`);
  return lines;
}

const columns = ["ID", "FUNCTION", "TYPE", "OBJECT", "BODY", "ATTEMPTS", "FAILED AT", "ERROR"];

async function show(client: DeadLetterClient, id: string): Promise<number> {
  process.stdout.write(`${JSON.stringify(await client.show(id), null, 2)}\n`);
  return 0;
}

async function settle(
  client: DeadLetterClient,
  action: "replay" | "drop",
  ids: readonly string[],
  isJson: boolean,
): Promise<number> {
  const waiting = (await client[action](ids)) ?? [];
  report({ action, count: new Set(ids).size, left: 0, waiting }, isJson);
  return 0;
}

/** The result of a command. */
interface CommandResult {
  readonly action: "replay" | "drop";
  readonly count: number;
  /** Number of refused letters. */
  readonly left: number;
  /** Replayed events of functions that are not loaded. */
  readonly waiting: readonly WaitingReplay[];
}

function report({ action, count, left, waiting }: CommandResult, isJson: boolean): void {
  const done = ({ replay: "replayed", drop: "dropped" } as const)[action];
  const whole = [...Map.groupBy(waiting, (each) => each.function).values()].flatMap(([first, ...more]) =>
    first ? [{ ...first, events: more.reduce((sum, { events }) => sum + events, first.events) }] : [],
  );
  const waits = whole.flatMap((each) => (each.message === undefined ? [] : waitsFor(each.function, each.message)));
  const text = [`${done} ${count}${left > 0 ? `, left ${left}` : ""}`, ...waits].join("; ");
  const json = { [done]: count, left, ...(action === "replay" && { waiting: whole }) };
  process.stdout.write(`${isJson ? JSON.stringify(json, null, 2) : text}\n`);
}

const waitsFor = (name: string, message: string): string =>
  `function ${name} is not loaded (${clean(reasonOf({ message }))}): its events wait on disk until it loads`;

/** Settles the letters that exist now. Letters of events that fail again meanwhile are not included. */
async function settleAll(
  client: DeadLetterClient,
  action: "replay" | "drop",
  only: string | undefined,
  isJson: boolean,
): Promise<number> {
  const ids: string[] = [];
  for (let page = await client.list({ function: only }); page.length > 0; ) {
    ids.push(...page.map(({ id }) => id));
    page = page.length < deadLetterPageSize ? [] : await client.list({ after: ids.at(-1), function: only });
  }
  if (ids.length === 0 && only !== undefined) await assertKnown(client, only);
  const waiting: WaitingReplay[] = [];
  const refusals: RefusedLetter[] = [];
  for (let start = 0; start < ids.length; start += mostIds) {
    refusals.push(...(await settleEach(client, action, ids.slice(start, start + mostIds), waiting)));
  }
  const left = refusals.length;
  reportRefusedLetters(refusals);
  report({ action, count: ids.length - left, left, waiting }, isJson);
  await reportOthers(client);
  return left === 0 ? 0 : 1;
}

/** Reports an unknown function, unless other replicas may have letters of it. @throws WatchfireError WF_RUNTIME_NO_FUNCTION */
async function assertKnown(client: DeadLetterClient, name: string): Promise<void> {
  const names = await client.functions();
  if (names.includes(name) || (await client.others()) !== undefined) return;
  throw new WatchfireError("WF_RUNTIME_NO_FUNCTION", {
    what: "no function of this name runs or has dead letters",
    actual: name,
    hint: names.length === 0 ? "no function is known there" : `there are ${names.toSorted().join(", ")}`,
  });
}

/** A letter that cannot be settled. */
interface RefusedLetter {
  readonly id: string;
  readonly message: string;
}

/** Reports each reason once, with the first of its letters, and the number of the others. */
function reportRefusedLetters(refusals: readonly RefusedLetter[]): void {
  const alike = Map.groupBy(refusals, ({ id, message }) => message.replace(JSON.stringify(id), ""));
  for (const [first, ...others] of alike.values()) {
    const more = others.length === 0 ? "" : ` (the same for ${others.length} more)`;
    process.stderr.write(`${first?.message}${more}\n`);
  }
}

/**
 * Settles all letters in one call. If one is refused, settles them one by one. Returns the refused ones, and adds replayed events
 * that wait to `waiting`.
 */
async function settleEach(
  client: DeadLetterClient,
  action: "replay" | "drop",
  ids: readonly string[],
  waiting: WaitingReplay[],
): Promise<readonly RefusedLetter[]> {
  try {
    waiting.push(...((await client[action](ids)) ?? []));
    return [];
  } catch (error) {
    if (!(error instanceof WatchfireError) || !refusalCodes.has(error.code)) throw error;
    const [id] = ids;
    if (id !== undefined && ids.length === 1) return [{ id, message: error.message }];
  }
  const refusals: RefusedLetter[] = [];
  for (const id of ids) refusals.push(...(await settleEach(client, action, [id], waiting)));
  return refusals;
}

const refusalCodes: ReadonlySet<string> = new Set([
  "WF_CHECKPOINT_NO_DEAD_LETTER",
  "WF_CHECKPOINT_LETTER_HOMELESS",
  "WF_CHECKPOINT_LETTER_EMPTY",
]);
