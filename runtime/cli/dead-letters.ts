import { z } from "zod";
import { DeadLetters } from "../checkpoint/dead-letters.ts";
import { SqliteStore } from "../checkpoint/sqlite.ts";
import { deadLetterPageSize } from "../checkpoint/store.ts";
import { table } from "../dev/banner.ts";
import { WatchfireError } from "../errors.ts";
import {
  type DeadLetterDetail,
  type DeadLetterRow,
  deadLetterRowSchema,
  deadLetterSchema,
  describeDeadLetter,
  describeSummary,
} from "../observe/dead-letter.ts";
import type { Command, Invocation } from "./command.ts";
import { data } from "./options.ts";

/** Where the dead letters are reached: the data folder while no runtime holds it, or a runtime's own address. */
interface Desk {
  /** One page, of those after the letter `after`. */
  list(after: string | undefined): Promise<DeadLetterRow[]>;
  show(id: string): Promise<DeadLetterDetail>;
  replay(ids: readonly string[]): Promise<void>;
  drop(ids: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

export const deadLetters: Command = {
  name: "dead-letters",
  summary: "lists, shows, replays and drops events that were given up",
  operands: "list | show ID | replay ID... | drop ID...",
  options: {
    data: { value: "DIR", summary: "the data folder of a runtime that is stopped", default: data.default },
    url: { value: "URL", summary: "a runtime that runs, such as http://127.0.0.1:9464" },
    after: { value: "ID", summary: `list those after this one; a list has at most ${deadLetterPageSize}` },
  },
  async run(invocation) {
    const [action, ...ids] = invocation.operands;
    const { after } = invocation.options;
    check(action, ids, after);
    const desk = openDesk(invocation);
    try {
      process.stdout.write(await act(desk, action, ids, after));
    } finally {
      await desk.close();
    }
    return 0;
  },
};

function check(action: string | undefined, ids: readonly string[], after: string | undefined): void {
  if (after !== undefined && (action !== "list" || !/^\d{1,15}$/.test(after))) {
    throw new WatchfireError("WF_CLI_USAGE", {
      what: "--after takes the id of a dead letter, for list",
      actual: after,
    });
  }
  const wants = { list: [0, 0], show: [1, 1], replay: [1, 1000], drop: [1, 1000] }[action ?? ""];
  if (wants && ids.length >= (wants[0] ?? 0) && ids.length <= (wants[1] ?? 0)) return;
  throw new WatchfireError("WF_CLI_USAGE", {
    what: "dead-letters takes list, show ID, replay ID... or drop ID...",
    actual: [action, ...ids].join(" "),
    hint: "run `watchfire dead-letters --help`",
  });
}

async function act(
  desk: Desk,
  action: string | undefined,
  ids: readonly string[],
  after: string | undefined,
): Promise<string> {
  if (action === "replay" || action === "drop") {
    await desk[action](ids);
    return `${action === "replay" ? "replayed" : "dropped"} ${ids.length}\n`;
  }
  if (action === "show") return `${JSON.stringify(await desk.show(ids[0] ?? ""), null, 2)}\n`;
  const rows = (await desk.list(after)).map((letter) => [
    letter.id,
    letter.function,
    letter.type,
    `${letter.kind} ${letter.namespace ? `${letter.namespace}/` : ""}${letter.name}`,
    String(letter.attempts),
    letter.failedAt,
    firstLine(`${letter.error.code ?? letter.error.name}: ${letter.error.message}`),
  ]);
  if (rows.length === 0) return "no dead letters\n";
  const lines = table(["ID", "FUNCTION", "TYPE", "OBJECT", "ATTEMPTS", "FAILED AT", "ERROR"], rows);
  if (rows.length === deadLetterPageSize) lines.push(`there may be more: list --after ${rows.at(-1)?.[0]}`);
  return `${lines.join("\n")}\n`;
}

const firstLine = (text: string): string => text.split("\n", 1)[0]?.slice(0, 100) ?? "";

function openDesk({ options }: Invocation): Desk {
  return options.url === undefined ? folderDesk(options.data ?? data.default) : remoteDesk(options.url);
}

function folderDesk(folder: string): Desk {
  const store = new SqliteStore({ folder, maintenance: true });
  const letters = new DeadLetters(store);
  return {
    list: async (after) => (await letters.list({ after })).map(describeSummary),
    show: async (id) => describeDeadLetter(await letters.show(id)),
    replay: (ids) => letters.replay(ids),
    drop: (ids) => letters.drop(ids),
    close: () => store.close(false),
  };
}

function remoteDesk(url: string): Desk {
  const ask = async (path: string, body?: unknown): Promise<unknown> => {
    let response: Response;
    try {
      response = await fetch(
        new URL(path, url),
        body === undefined
          ? {}
          : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) },
      );
    } catch (cause) {
      throw new WatchfireError("WF_CLI_UNREACHABLE", { what: "no runtime answers", actual: url, cause });
    }
    const answer: unknown = await response.json().catch(() => undefined);
    if (response.ok) return answer;
    const said = z.object({ error: z.string() }).safeParse(answer);
    throw new WatchfireError("WF_CLI_REFUSED", { what: said.success ? said.data.error : `status ${response.status}` });
  };
  return {
    list: async (after) =>
      deadLetterRowSchema
        .array()
        .parse(await ask(after === undefined ? "dead-letters" : `dead-letters?after=${after}`)),
    show: async (id) => deadLetterSchema.parse(await ask(`dead-letters/${encodeURIComponent(id)}`)),
    replay: async (ids) => void (await ask("dead-letters/replay", { ids })),
    drop: async (ids) => void (await ask("dead-letters/drop", { ids })),
    close: async () => undefined,
  };
}
