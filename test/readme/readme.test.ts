import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { errorCodes } from "../../runtime/base/errors.ts";
import { pages, read, refreshed } from "./sections.ts";

const root = resolve(import.meta.dirname, "../..");
const documents = ["README.md", ...globSync("runtime/docs/*.md", { cwd: root })];

/** Other pages with links. */
const others = globSync([".github/*.md", ".changeset/*.md", "{sdk,runtime,deploy,test}/**/README.md"], {
  cwd: root,
  exclude: (name) => /node_modules|\.packages|\.image|templates/.test(name),
});

describe("the docs", () => {
  it.each(Object.keys(pages) as (keyof typeof pages)[])(
    "tell the %s as the code has them; `npm run docs` makes it so",
    (name) => {
      expect(read(pages[name])).toBe(refreshed(name));
    },
  );

  it.each([...documents, ...others])("link to files that are there: %s", (file) => {
    const targets = [...read(file).matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)|src="([^":]+)"/g)].map(
      ([, a, b]) => a ?? b ?? "",
    );
    expect(targets.filter((target) => !existsSync(resolve(root, dirname(file), target)))).toEqual([]);
  });

  it("begin with a README that takes a minute", () => {
    expect(read("README.md").split("\n").length).toBeLessThanOrEqual(151);
  });

  it("are all in the index of the guide, which the README links", () => {
    const index = "runtime/docs/README.md";
    expect(read("README.md")).toContain(`(${index})`);
    const pagesOf = globSync("*.md", { cwd: resolve(root, dirname(index)) }).filter((page) => page !== "README.md");
    expect(pagesOf.filter((page) => !read(index).includes(`(${page})`))).toEqual([]);
  });

  it("take at most 150 lines for each page of the guide; what is longer is reference", () => {
    const [guide = ""] = read("runtime/docs/README.md").split("\n## Reference");
    const named = [...guide.matchAll(/\]\((\w[\w-]*\.md)[)#]/g)].map(([, page = ""]) => `runtime/docs/${page}`);
    expect(named.length).toBeGreaterThan(25);
    // The table of powers is generated from code.
    const linesOf = (page: string) =>
      read(page)
        .replace(/<!-- (\w+) -->[\s\S]*?<!-- \/\1 -->/g, "")
        .split("\n").length;
    expect(named.filter((page) => linesOf(page) > 151)).toEqual([]);
  });

  const guide = globSync("runtime/docs/*.md", { cwd: root });

  it.each(guide)("begin with one promise, and show an example, a table or a picture before the rules: %s", (page) => {
    const [title = "", ...lines] = read(page).split("\n");
    expect(title).toMatch(/^# /);
    const first =
      lines
        .join("\n")
        .trimStart()
        .split(/\n\s*\n/)[0] ?? "";
    expect(first, "the first paragraph is the page's promise").toMatch(/^[A-Z`]/);
    expect(first.length).toBeLessThanOrEqual(240);
    const shown = lines.findIndex((line) => /^(```|\||<img)/.test(line));
    expect(shown).toBeGreaterThan(0);
    const words = lines.slice(0, shown).join(" ").split(/\s+/).filter(Boolean).length;
    expect(words, "words before the first example, table or picture").toBeLessThanOrEqual(70);
  });

  it("link to headings that are there", () => {
    const anchorsOf = (file: string) =>
      [...read(file).matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
        heading
          .toLowerCase()
          .replace(/[^\w\- ]/g, "")
          .replaceAll(" ", "-"),
      );
    const missing = [...documents, ...others].flatMap((file) =>
      [...read(file).matchAll(/\]\(([^)#:]*)#([^)]+)\)/g)]
        .map(([, page = "", anchor = ""]) => ({ target: page ? join(dirname(file), page) : file, anchor }))
        .filter(({ target, anchor }) => !anchorsOf(target).includes(anchor))
        .map(({ target, anchor }) => `${file}: ${target}#${anchor}`),
    );
    expect(missing).toEqual([]);
  });
});

describe("the registry of errors", () => {
  const sources = globSync("{runtime,sdk}/**/*.{ts,js}", { cwd: root, exclude: (name) => name === "node_modules" })
    .filter((file) => file !== "runtime/base/errors.ts" && !file.startsWith("runtime/base/error-codes/"))
    .map((file) => readFileSync(resolve(root, file), "utf8"))
    .join("\n");

  it("has no code that nothing raises", () => {
    expect(Object.keys(errorCodes).filter((code) => !sources.includes(code))).toEqual([]);
  });

  it("has every code that is raised", () => {
    const used = new Set(sources.match(/\bWF_[A-Z]+_[A-Z_]+\b/g));
    expect([...used].filter((code) => !Object.hasOwn(errorCodes, code))).toEqual([]);
  });
});
