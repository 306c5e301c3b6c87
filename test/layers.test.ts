import { globSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { basename, dirname, join, relative, resolve } from "node:path";
import { describe, expect, it } from "vitest";

const root = resolve(import.meta.dirname, "..");

/** Rooms in pipeline order; a file may import from its own room and from rooms before it. */
const order = [
  "base",
  "v8",
  "document",
  "kube",
  "manifest",
  "types",
  "bundle",
  "lease",
  "slots",
  "journal",
  "informer",
  "cel",
  "engine",
  "sandbox",
  "reads",
  "access",
  "rbac",
  "observe",
  "history",
  "cluster",
  "dev",
  "catalog",
  "migrate",
  "control",
  "console",
  "host",
  "cli",
];

const notOurs = (name: string) => ["node_modules", "templates"].includes(basename(name));
const files = globSync(["runtime/**/*.ts", "sdk/**/*.ts"], { cwd: root, exclude: notOurs });

/** Every module specifier of a file: static, type-only, re-exported and dynamic. */
function specifiers(file: string): string[] {
  const text = readFileSync(join(root, file), "utf8").replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
  const found = text.matchAll(
    /(?:^|[\s;}])(?:import|export)\s[^"'`;]*?from\s*["']([^"']+)["']|import\s*\(?\s*["']([^"']+)["']/g,
  );
  return [...found].flatMap((match) => match[1] ?? match[2] ?? []);
}

/** The packages' folders, the inner one first. */
const packageFolders = ["runtime/cel", "runtime/cluster", "runtime", "sdk", "deploy/create"];
const packageFolderOf = (file: string) => packageFolders.find((folder) => file.startsWith(`${folder}/`));
const packageSources = globSync("{runtime,sdk,deploy/create}/**/*.{ts,js}", { cwd: root, exclude: notOurs });
interface PackageManifest {
  readonly name: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly exports?: Readonly<Record<string, string>>;
}
const packages = packageFolders.map((folder) => {
  const manifest: PackageManifest = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"));
  const { name, dependencies = {}, exports = {} } = manifest;
  const sources = packageSources.filter((file) => packageFolderOf(file) === folder);
  const specified = Object.entries(exports).map(([path, file]) => [join(name, path), join(folder, file)] as const);
  return { folder, name, dependencies: Object.keys(dependencies), sources, exports: new Map(specified) };
});

/** The package's name in a specifier such as `@watchfire/sdk/testing`. */
const packageOf = (specifier: string) => /^(?:@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? "";

/** The file that an import by a package's name, such as `@watchfire/sdk/testing`, resolves to. */
const doors = new Map(packages.flatMap((each) => [...each.exports]));

/** The files of the project that each file imports, by a path or by a package's name. */
const graph = new Map(
  files.map((file) => [
    file,
    specifiers(file).flatMap((specifier) =>
      specifier.startsWith(".")
        ? relative(root, resolve(root, dirname(file), specifier))
        : (doors.get(specifier) ?? []),
    ),
  ]),
);

/** Every cycle of imports. */
function circlesOf(imports: ReadonlyMap<string, readonly string[]>): string[] {
  const done = new Set<string>();
  const circles: string[] = [];
  const visit = (one: string, path: readonly string[]): void => {
    if (path.includes(one)) circles.push([...path.slice(path.indexOf(one)), one].join(" -> "));
    if (done.has(one) || path.includes(one)) return;
    for (const next of imports.get(one) ?? []) visit(next, [...path, one]);
    done.add(one);
  };
  for (const one of imports.keys()) visit(one, []);
  return circles;
}

const roomOf = (file: string): string => file.split("/")[1] ?? "";

describe("the house's layers", () => {
  it("no import goes in a circle", () => {
    expect(circlesOf(graph)).toEqual([]);
  });

  it("no import goes in a circle between folders, at any depth", () => {
    // The entry point of a folder may import everything in the folder: an index.ts, or the file with the folder's name in the
    // parent folder.
    const isDoor = (file: string) =>
      file.endsWith("/index.ts") || files.some((one) => dirname(one) === file.slice(0, -3));
    const folderOf = (file: string) => (isDoor(file) ? file : dirname(file));
    const folders = Map.groupBy(graph, ([file]) => folderOf(file));
    const between = [...folders].map(([folder, imports]) => {
      const others = imports.flatMap(([, targets]) => targets.map(folderOf));
      return [folder, [...new Set(others)].filter((other) => other !== folder)] as const;
    });
    expect(circlesOf(new Map(between))).toEqual([]);
  });

  it("each package names the packages that it imports, and no other", () => {
    const known = new Set(packages.flatMap(({ dependencies }) => dependencies));
    for (const { folder, dependencies, sources } of packages) {
      const texts = sources.map((file) => readFileSync(join(root, file), "utf8"));
      const isImported = (name: string) => {
        const pattern = new RegExp(`(?:from|import|require)\\s*\\(?\\s*"${name.replaceAll(".", "\\.")}[/"]`);
        return texts.some((text) => pattern.test(text));
      };
      expect([...dependencies].sort(), folder).toEqual([...known].filter(isImported).sort());
    }
  });

  it("no package reaches another in a circle, neither by its name nor by a path", () => {
    const between = packages.map(({ folder, dependencies, sources }) => {
      const byPath = sources.flatMap((file) =>
        specifiers(file)
          .filter((specifier) => specifier.startsWith("."))
          .map((specifier) => packageFolderOf(relative(root, resolve(root, dirname(file), specifier)))),
      );
      const byName = [...dependencies, ...sources.flatMap(specifiers).map(packageOf)].map(
        (name) => packages.find((each) => each.name === name)?.folder,
      );
      const others = [...byPath, ...byName].filter((other) => other !== undefined && other !== folder);
      return [folder, [...new Set(others)] as string[]] as const;
    });
    expect(between.flatMap(([, others]) => others).length).toBeGreaterThan(2);
    expect(circlesOf(new Map(between))).toEqual([]);
  });

  it("no room imports one downstream of it", () => {
    const wrong = [...graph].flatMap(([file, imports]) =>
      imports
        .filter((target) => file.startsWith("runtime/") && target.startsWith("runtime/"))
        .filter((target) => order.indexOf(roomOf(target)) > order.indexOf(roomOf(file)))
        .map((target) => `${file} imports ${target}`),
    );
    expect(wrong).toEqual([]);
  });

  it("no folder of the engine imports one downstream of it", () => {
    const folders = ["account", "filter", "delivery", "history", "commit", "redelivery", "state", "work", "intake"];
    const folderOf = (file: string) => folders.indexOf(/^runtime\/engine\/([^/]+)\//.exec(file)?.[1] ?? "");
    const wrong = [...graph].flatMap(([file, imports]) =>
      imports
        .filter((target) => folderOf(file) >= 0 && folderOf(target) > folderOf(file))
        .map((target) => `${file} imports ${target}`),
    );
    expect(wrong).toEqual([]);
  });

  it("every room has its place in the order", () => {
    const rooms = new Set(files.filter((file) => file.startsWith("runtime/")).map(roomOf));
    expect([...rooms].filter((room) => !order.includes(room))).toEqual([]);
  });

  it("what runs inside an isolate, and the SDK, import nothing of Node", () => {
    const guests = files.filter((file) => file.endsWith(".guest.ts") || file.startsWith("sdk/"));
    const wrong = guests.flatMap((file) =>
      specifiers(file)
        .filter((specifier) => isBuiltin(specifier))
        .map((specifier) => `${file} imports ${specifier}`),
    );
    expect(wrong).toEqual([]);
  });

  it("the embedded cluster and CEL are packages of their own: they import nothing of the runtime, and go by their names", () => {
    const apart = (file: string) => ["runtime/cel", "runtime/cluster"].find((folder) => file.startsWith(`${folder}/`));
    const wrong = [...graph].flatMap(([file, imports]) =>
      imports
        .filter((target) => apart(file) !== apart(target))
        .filter((target) => (apart(target) ? ![...doors.values()].includes(target) : true))
        .map((target) => `${file} imports ${target}`),
    );
    const elsewhere = files
      .filter((file) => !file.startsWith("runtime/cli/"))
      .filter((file) => specifiers(file).includes("@watchfire/cluster"));
    expect([...wrong, ...elsewhere]).toEqual([]);
  });

  it("the parent's modules never load isolated-vm", () => {
    const wrong = files
      .filter((file) => !file.startsWith("runtime/sandbox/executor/"))
      .filter((file) => specifiers(file).includes("isolated-vm"));
    expect(wrong).toEqual([]);
  });

  it("a name of a type means one thing in the whole runtime", () => {
    const places = files
      .filter((file) => file.startsWith("runtime/") && !file.startsWith("runtime/cluster/") && !file.endsWith(".d.ts"))
      .flatMap((file) => {
        const text = readFileSync(join(root, file), "utf8");
        const declared = text.matchAll(/^(?:export )?(?:declare )?(?:abstract )?(?:interface|type|class|enum) (\w+)/gm);
        return [...declared].map(([, name = ""]) => ({ name, file }));
      });
    const twice = [...Map.groupBy(places, ({ name }) => name)].filter(([, found]) => found.length > 1);
    expect(twice.map(([name, found]) => `${name}: ${found.map(({ file }) => file).join(", ")}`)).toEqual([]);
  });

  it("what is exported is imported by somebody", () => {
    const readers = globSync(["{runtime,sdk,deploy,test,functions}/**/*.{ts,js}", "*.ts"], {
      cwd: root,
      exclude: notOurs,
    });
    const taken = new Set<string>();
    for (const file of readers) {
      const text = readFileSync(join(root, file), "utf8");
      const take = (specifier = "", names = ["*"]) => {
        const target = specifier.startsWith(".")
          ? relative(root, resolve(root, dirname(file), specifier))
          : doors.get(specifier);
        if (target !== undefined) for (const name of names) taken.add(`${target} ${name}`);
      };
      for (const [, names = "", from] of text.matchAll(
        /(?:import|export)\s+(?:type\s+)?\{([^}]*)\}\s*from\s*"([^"]+)"/g,
      ))
        take(
          from,
          [...names.matchAll(/(?:^|,)\s*(?:type\s+)?(\w+)/g)].map(([, name = ""]) => name),
        );
      for (const [, from] of text.matchAll(/(?:import|export)\s+\*(?:\s+as\s+\w+)?\s*from\s*"([^"]+)"/g)) take(from);
      for (const [, from] of text.matchAll(/import\(\s*"([^"]+)"\s*\)/g)) take(from);
    }
    // Exports of WebAssembly are used by their names there.
    const unused = files
      .filter((file) => !file.endsWith(".wasm.ts"))
      .flatMap((file) => {
        const text = readFileSync(join(root, file), "utf8");
        const declared = text.matchAll(
          /^export (?:async )?(const|let|function\*?|(?:abstract )?class|enum|interface|type) (\w+)/gm,
        );
        // The SDK's types are for users.
        const names = [...declared].flatMap(([, kind = "", name = ""]) =>
          file.startsWith("sdk/") && ["interface", "type"].includes(kind) ? [] : [name],
        );
        return taken.has(`${file} *`)
          ? []
          : names.filter((name) => !taken.has(`${file} ${name}`)).map((name) => `${file} ${name}`);
      });
    expect(unused).toEqual([]);
  });

  it("no file is longer than 600 lines", () => {
    const tests = globSync("test/**/*.ts", { cwd: root });
    const isMade = (file: string) =>
      readFileSync(join(root, file), "utf8").startsWith("// biome-ignore-all format: made by");
    const long = [...files.filter((file) => !isMade(file)), ...tests]
      .map((file) => ({ file, lines: readFileSync(join(root, file), "utf8").split("\n").length }))
      .filter(({ lines }) => lines > 600);
    expect(long).toEqual([]);
  });

  it("only variables.ts reads the environment", () => {
    const wrong = files.filter(
      (file) =>
        file !== "runtime/base/variables.ts" && /(?<!["`])process\.env\b/.test(readFileSync(join(root, file), "utf8")),
    );
    expect(wrong).toEqual([]);
  });
});
