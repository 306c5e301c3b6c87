import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");
const page = readFileSync(join(root, ".github/CONTRIBUTING.md"), "utf8");

/** Files that are not searched. The embedded cluster and Kubernetes' own types do not deal with functions. */
const notSearched = /(^|\/)(node_modules|\.packages|\.image|new-project\/templates|CHANGELOG\.md|DESIGN\.md)(\/|$)/;
const files = globSync("{runtime,sdk,deploy}/**/*.{ts,js,yaml,md}", { cwd: root })
  .filter((file) => !notSearched.test(file) && !/^(runtime\/cluster|sdk\/kubernetes)\//.test(file))
  .map((file) => ({ file, text: readFileSync(join(root, file), "utf8") }));

interface Recipe {
  /** The end of the heading "To add …". */
  readonly of: string;
  /** Matches each file that mentions the example. */
  readonly example: RegExp;
  /** Files that mention the example but need no change for another one, each with the reason. */
  readonly others: Readonly<Record<string, string>>;
}

const recipes: readonly Recipe[] = [
  {
    of: "a form of schedule",
    example: /\btimes\.everyMs|IntervalSchedule|\bevery: duration|\{ everyMs: milli|\[every, jitter\]|\{ everyMs \}/,
    others: {},
  },
  {
    of: "a trigger kind",
    example:
      /\bschedule(Kind|Resource|Schema|Faults|Text|Of)\b|ScheduledTrigger|"Scheduled"|\bschedules\b|"Schedule"|"scheduled"/,
    others: {
      "runtime/console/event-way.ts": "the console names a schedule as a step before the handler",
      "runtime/engine/work/event-queue.ts": "a comment",
      "runtime/engine/work/primary.ts": "a comment",
      "runtime/engine/account/loop-time.ts": "a name of its work on the account",
      "runtime/docs/metrics.md": "the same name, in a metric's label",
      "runtime/host/control-api.ts": "`watchfire run` runs one at once",
      "runtime/control/redeliver/redeliverer.ts": "says of a function that it only has schedules",
      "runtime/cli/trigger-types.ts": "compares the types of a handler's triggers with the manifest's",
      "runtime/cli/explain.ts": "it explains all schedules of a function",
      "runtime/docs/commands.md": "the summaries of these two commands",

      "runtime/engine/work/reconciling.ts": "a comment",
      "runtime/migrate/layout.ts": "a comment",
      "runtime/observe/metrics.ts": "begins a counter at 0 for a function that drops events",
      "runtime/catalog/deploy/canary.ts": "refuses a canary that differs in them, by the name in the manifest",
      "runtime/rbac/built-in.ts": "numbers the triggers as the manifest does",
    },
  },
  {
    of: "a journal backend",
    example: /Checkpoint<SecretsJournal>|"kubernetes"|journal\/secrets|storeKinds/,
    others: {
      "runtime/access/own-objects.ts": "only because the backend's data are Secrets, which are hidden from functions",
      "runtime/rbac/objects.ts": "only because the backend's data are Secrets, which are created beforehand",
      "runtime/migrate/open-store.ts": "asks of the Secrets alone whether NATS has the same positions",
      "deploy/chart/templates/checkpoint.yaml":
        "only because the backend's data are Secrets, which are created beforehand",
    },
  },
  {
    of: "a ctx method",
    example: /getScale/,
    others: {},
  },
  {
    of: "a metric",
    example: /watch_poison_lines_total|(?:observer\.|^ *)poisoned[(:]/m,
    others: {},
  },
  {
    of: "a status field",
    example: /\blagSeconds\b|\bcountMerges\b/,
    others: {
      "runtime/observe/metrics.ts": "the value is a gauge as well",
      "runtime/cli/status.ts": "`watchfire status` has a column for it",
      "runtime/console/change-feed.ts": "leaves it out, because an age changes all the time",
      "runtime/host/fleet-owner.ts": "`watchfire slots` shows the value as well",
      "runtime/docs/troubleshooting.md": "names the fields that help to find a fault",
    },
  },
  {
    of: "a command",
    example: /pauseAnswerSchema|"\.\/pause\.ts"|"pause"|\bPauses\b|^watchfire pause|\bpause\(name/m,
    others: {
      "runtime/console/fleet-answers.ts": "a pause is sent to all replicas that have a shard of the function",
      "runtime/cli/dev-keys.ts": "a key of `watchfire dev` does the same",
    },
  },
];

/** The files and folders that a recipe lists. */
function listed(of: string): string[] {
  const [, section = ""] = page.split(`### To add ${of}\n`);
  const [text = ""] = section.split(/^##+ /m);
  const rows = text.split("\n").filter((line) => line.startsWith("| `"));
  return rows.flatMap((row) => [...(row.split(" | ")[0] ?? "").matchAll(/`([^`]+)`/g)].map(([, path = ""]) => path));
}

describe.each(recipes)("the recipe to add $of", ({ of, example, others }) => {
  const list = listed(of);
  const naming = files.filter(({ text }) => example.test(text)).map(({ file }) => file);
  const covers = (path: string, file: string) => (path.endsWith("/") ? file.startsWith(path) : file === path);

  it("lists files that exist", () => {
    expect(list.length).toBeGreaterThan(3);
    expect(list.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });

  it("lists every file that its example touches", () => {
    const missing = naming.filter((file) => !list.some((path) => covers(path, file)) && !Object.hasOwn(others, file));
    expect(missing).toEqual([]);
  });

  it("lists no source that its example does not touch", () => {
    const sources = list.filter((path) => path.endsWith(".ts") && !path.startsWith("test/"));
    const stale = [...sources, ...Object.keys(others)].filter((path) => !naming.includes(path));
    expect(stale).toEqual([]);
  });
});

it("the page has no recipe without an example", () => {
  const headings = [...page.matchAll(/^### To add (.+)$/gm)].map(([, of]) => of);
  expect(headings).toEqual(recipes.map(({ of }) => of));
});
