import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");
const patterns = [
  "*.md",
  ".github/**/*.{md,yaml}",
  ".changeset/*.md",
  "{runtime,sdk,deploy,functions,test}/**/*.{md,ts,js,yaml,txt,json}",
];
const excluded = /node_modules|\.packages|\.image|CHANGELOG\.md|test\/readme\/packages\.test\.ts/;
const texts = globSync(patterns, { cwd: root, exclude: (name) => excluded.test(name) });

/** This project's packages. They are not published yet, so on the registry anybody could take the names. */
const ours = ["@watchfire/sdk", "@watchfire/cluster", "@watchfire/runtime", "create-watchfire", "watchfire"];

/** Commands that fetch a package, with the package; `npm create x` fetches `create-x`. */
const fetches =
  /\b(npx|npm (?:exec|create|init|install|i|add|ci)|yarn (?:add|create|dlx)|pnpm (?:add|create|dlx)|bunx?)((?: +-{1,2}[\w=.@-]+)*) +(@?[\w][\w./@-]*)/g;

const fetched = texts.flatMap((file) =>
  [...readFileSync(join(root, file), "utf8").matchAll(fetches)].map(([text, command = "", words = "", name = ""]) => {
    const bare = name.replace(/(?<=.)@[^/]*$/, "");
    const isCreate = / (?:create|init)$/.test(command);
    return { file, text, command, words, name, as: isCreate ? `create-${bare}` : bare };
  }),
);

it("no text has anybody fetch a package of ours from npm before it is published", () => {
  expect(fetched.length).toBeGreaterThan(20);
  // `npx watchfire` runs the command that the checkout or the project has installed; with a version or --yes it would be fetched.
  const isInstalled = ({ command, words, name }: (typeof fetched)[number]) =>
    command === "npx" && words === "" && name === "watchfire";
  const wrong = fetched.filter((each) => ours.includes(each.as) && !isInstalled(each));
  expect(wrong.map(({ file, text }) => `${file}: ${text}`)).toEqual([]);
});
