// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are placeholders of manifests
import { chmodSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type LoadOptions, loadFunctions } from "../../runtime/manifest/load.ts";
import { ManifestValues } from "../../runtime/manifest/values.ts";
import { folderOf } from "../tools/folder.ts";
import { loadSpec, manifest } from "./manifest.ts";

const isRoot = process.getuid?.() === 0;
if (isRoot) process.stdout.write("skipped: a functions folder that a user may not read; root may read all\n");

describe("loading a functions folder", () => {
  it("finds a folder per function, and several functions in one file", async () => {
    const folder = folderOf({
      "a/function.yaml": manifest("a"),
      "a/handler.ts": "",
      "b/function.yml": manifest("b"),
      "b/handler.ts": "",
      "more.yaml": `---\n${manifest("c")}---\n---\n${manifest("d")}...\n`,
      "handler.ts": "",
      "shared/code.ts": "",
      ".hidden/function.yaml": "nonsense",
      "node_modules/x/function.yaml": "nonsense",
    });
    const { functions, faults } = await loadFunctions(folder);
    expect(faults).toEqual([]);
    expect(functions.map(({ name, handler }) => [name, handler.slice(folder.length)])).toEqual([
      ["a", "/a/handler.ts"],
      ["b", "/b/handler.ts"],
      ["c", "/handler.ts"],
      ["d", "/handler.ts"],
    ]);
  });

  it("loses the faulty function alone", async () => {
    const folder = folderOf({
      "good/function.yaml": manifest("good"),
      "good/handler.ts": "",
      "bad/function.yaml": manifest("bad"),
      "more.yaml": `${manifest("first")}---\n${manifest("second").replace("ConfigMap", "configmap")}---\n${manifest("third")}`,
      "handler.ts": "",
    });
    const { functions, rejected } = await loadFunctions(folder);
    expect(functions.map(({ name }) => name)).toEqual(["first", "good", "third"]);
    expect(rejected.map(({ name, faults }) => [name, faults[0]?.code, faults[0]?.detail.place?.line])).toEqual([
      ["bad", "WF_MANIFEST_HANDLER_MISSING", 5],
      ["second", "WF_MANIFEST_INVALID_VALUE", 13],
    ]);
  });

  it("names what fills a placeholder in the faults of fields that hold one, if no values are given, and in no other", async () => {
    const folder = folderOf({
      "a/function.yaml": manifest("a").replace("ConfigMap", '"${kind}"').replace("handler.ts", "none.ts"),
    });
    const hints = async (options: LoadOptions) => {
      const { faults } = await loadFunctions(folder, options);
      return Object.fromEntries(faults.map(({ code, hint }) => [code, hint]));
    };
    const plain = await hints({});
    const { WF_MANIFEST_INVALID_VALUE: kind } = plain;
    expect(Object.keys(plain).sort()).toEqual(["WF_MANIFEST_HANDLER_MISSING", "WF_MANIFEST_INVALID_VALUE"]);
    expect(await hints({ placeholders: "option" })).toEqual({
      ...plain,
      WF_MANIFEST_INVALID_VALUE: `${kind}; if it is a placeholder, name its values with --values FILE`,
    });
    expect(await hints({ placeholders: "build" })).toEqual({
      ...plain,
      WF_MANIFEST_INVALID_VALUE: `${kind}; if it is a placeholder, \`watchfire build --values FILE\` fills it`,
    });
    const values = ManifestValues.read("kind: '${kind}'\n", "stage.yaml");
    expect(await hints({ placeholders: "option", values })).toEqual(plain);
  });

  it("runs neither of two functions of one name, and each names the other's place", async () => {
    const folder = folderOf({
      "a/function.yaml": manifest("same"),
      "a/handler.ts": "",
      "b/function.yaml": manifest("same"),
      "b/handler.ts": "",
    });
    const { functions, faults } = await loadFunctions(folder);
    expect(functions).toEqual([]);
    expect(faults.map(({ message }) => message)).toEqual([
      expect.stringMatching(/a\/function\.yaml:3:19 metadata\.name: .*b\/function\.yaml:3,/),
      expect.stringMatching(/b\/function\.yaml:3:19 metadata\.name: .*a\/function\.yaml:3,/),
    ]);
  });

  it("lets the event loop turn while it reads many", async () => {
    const many = Array.from({ length: 160 }, (_, index) => [`f${index}.yaml`, manifest(`f${index}`)]);
    const folder = folderOf({ ...Object.fromEntries(many), "handler.ts": "" });
    let turns = 0;
    let loading = true;
    const turn = () => {
      turns++;
      if (loading) setImmediate(turn);
    };
    setImmediate(turn);
    const { functions } = await loadFunctions(folder);
    loading = false;
    expect(functions.length).toBe(160);
    expect(turns).toBeGreaterThanOrEqual(10);
  });

  it("says so where the folder or a file cannot be read", async () => {
    const folder = folderOf({ "a/function.yaml/x": "", "big/function.yaml": `# ${"x".repeat(1024 * 1024)}` });
    expect((await loadFunctions(folder)).faults.map(({ code, detail }) => [code, detail.actual])).toEqual([
      ["WF_MANIFEST_UNREADABLE", "EISDIR"],
      ["WF_MANIFEST_UNREADABLE", "1048578 bytes"],
    ]);
    expect((await loadFunctions(`${folder}/none`)).faults.map(({ code, detail: { what } }) => [code, what])).toEqual([
      ["WF_MANIFEST_FOLDER", "there is no such file or folder (ENOENT)"],
    ]);
  });

  /** Loads a folder whose inner folder `closed` the system refuses to open with this code. */
  const loadWith = (folder: string, code: string) =>
    loadFunctions(folder, {
      readFolder: (path) => {
        if (path === join(folder, "closed")) throw Object.assign(new Error(code), { code });
        return readdirSync(path);
      },
    });

  const beside = {
    "good/function.yaml": manifest("good"),
    "good/handler.ts": "",
    "closed/function.yaml": manifest("closed"),
    "closed/handler.ts": "",
  };

  it.each([
    ["EACCES", "permission is denied (EACCES)"],
    ["EIO", "the disk fails to read or write (EIO)"],
  ])("says so of a function's folder that cannot be read, and takes the others (%s)", async (code, words) => {
    const folder = folderOf(beside);
    const { functions, rejected, faults } = await loadWith(folder, code);
    expect(functions.map(({ name }) => name)).toEqual(["good"]);
    expect(rejected).toEqual([]);
    expect(faults.map(({ message }) => message.replace(`${folder}/`, ""))).toEqual([
      `WF_MANIFEST_UNREADABLE closed: the folder cannot be read: ${words}; let the user that runs this read it, or move it away`,
    ]);
  });

  it.each(["ENOENT", "ENOTDIR"])("passes over a folder that goes while it is read (%s)", async (code) => {
    const { functions, faults } = await loadWith(folderOf(beside), code);
    expect([functions.map(({ name }) => name), faults]).toEqual([["good"], []]);
  });

  it.skipIf(isRoot)("says so of a folder without the right to read, but for a disk's own", async () => {
    const folder = folderOf({ ...beside, "lost+found/x": "" });
    for (const name of ["closed", "lost+found"]) chmodSync(join(folder, name), 0);
    try {
      const { faults } = await loadFunctions(folder);
      expect(faults.map(({ code, detail }) => [code, detail.place?.file])).toEqual([
        ["WF_MANIFEST_UNREADABLE", join(folder, "closed")],
      ]);
    } finally {
      for (const name of ["closed", "lost+found"]) chmodSync(join(folder, name), 0o755);
    }
  });

  it("says why it cannot look at a handler", async () => {
    const folder = folderOf({ "a/function.yaml": manifest("a"), "b/function.yaml": manifest("b") });
    symlinkSync("handler.ts", join(folder, "a/handler.ts"));
    expect((await loadFunctions(folder)).faults.map(({ code, detail: { what } }) => [code, what])).toEqual([
      ["WF_MANIFEST_HANDLER_MISSING", "a link leads in a circle (ELOOP)"],
      ["WF_MANIFEST_HANDLER_MISSING", "no such file"],
    ]);
  });

  it("shows nothing of a file outside of the folder that a link passes off as a manifest", async () => {
    const folder = folderOf({
      token: "eyJhbGciOi",
      "functions/good/function.yaml": manifest("good"),
      "functions/good/handler.ts": "",
      "functions/.data/function.yaml": manifest("linked"),
      "functions/linked/handler.ts": "",
      "functions/far/handler.ts": "",
    });
    const functions = join(folder, "functions");
    symlinkSync("../.data/function.yaml", join(functions, "linked/function.yaml"));
    symlinkSync("../../token", join(functions, "far/function.yaml"));
    symlinkSync(join(folder, "token"), join(functions, "near.yaml"));
    const loaded = await loadFunctions(functions);
    expect(loaded.functions.map(({ name }) => name)).toEqual(["good", "linked"]);
    expect(loaded.faults.map(({ code, message }) => [code, /outside of the functions folder/.test(message)])).toEqual([
      ["WF_MANIFEST_UNREADABLE", true],
      ["WF_MANIFEST_UNREADABLE", true],
    ]);
    expect(loaded.faults.map(({ message }) => message).join()).not.toContain("eyJ");
  });

  it("fills in the defaults that the documentation names", async () => {
    const { functions } = await loadSpec("  triggers: [{ watch: { apiVersion: apps/v1, kind: Deployment } }]");
    expect(functions[0]).toMatchObject({
      name: "f",
      triggers: [
        {
          name: "deployment",
          namespaces: { type: "all" },
          labelSelector: "",
          fieldSelector: "",
          events: ["Added", "Modified", "Deleted"],
          initialEvents: "Deliver",
          changedFields: [],
          matchConditions: [],
          lastBody: "Full",
        },
      ],
      permissions: [],
      delivery: {
        concurrency: 4,
        mode: "All",
        timeoutMs: 30_000,
        retry: { maxAttempts: 5, initialDelayMs: 1000, maxDelayMs: 300_000, factor: 2 },
        onFailure: "DeadLetter",
      },
      resources: { memoryBytes: 64 * 1024 * 1024, cpuPerEventMs: 500 },
      isolation: "Handler",
      egress: [],
      env: [],
    });
  });

  it("takes a trust group by a word, and refuses one that is none with its place", async () => {
    const triggers = "  triggers: [{ watch: { apiVersion: v1, kind: Pod } }]\n";
    const good = await loadSpec(`${triggers}  trustGroup: payments`);
    expect(good.functions[0]?.trustGroup).toBe("payments");
    expect((await loadSpec(triggers)).functions[0]).not.toHaveProperty("trustGroup");
    const bad = await loadSpec(`${triggers}  trustGroup: "Team A"`);
    expect(bad.functions).toEqual([]);
    expect(bad.faults.map(({ message }) => message)).toEqual([
      expect.stringMatching(
        /^WF_MANIFEST_INVALID_VALUE .*function\.yaml:\d+:\d+ spec\.trustGroup: .*DNS label.*Team A/,
      ),
    ]);
  });

  it("refuses a label that JavaScript has its own idea of, whatever its value", async () => {
    const labelled = (labels: string) =>
      loadSpec(
        `  triggers:\n    - watch: { apiVersion: v1, kind: Pod, labelSelector: { matchLabels: { ${labels} } } }`,
      );
    for (const value of ["1", "x", "{ a: b }", "null"]) {
      const { functions, lines } = await labelled(`__proto__: ${value}`);
      expect(functions).toEqual([]);
      expect(lines).toEqual([
        expect.stringMatching(
          /^WF_MANIFEST_INVALID_VALUE f\/function\.yaml:7:86 .*__proto__: the key is not a label's key/,
        ),
      ]);
    }
    expect((await labelled("constructor: 1")).lines).toEqual([
      expect.stringMatching(/^WF_MANIFEST_WRONG_TYPE .*constructor: expected a text, received a number/),
    ]);
  });

  it("normalises what the user writes", async () => {
    const { functions, lines } = await loadSpec(`  triggers:
    - name: settings
      watch:
        apiVersion: v1
        kind: ConfigMap
        namespaceSelector: { matchNames: [team-b, team-a, team-b] }
        labelSelector: { matchLabels: { z: "1", a: "" }, matchExpressions: [{ key: m, operator: In, values: [y, x] }] }
        fieldSelector: metadata.name==b,metadata.name!=a
        events: [ADDED, deleted, Modified]
        changedFields: [.data, '.metadata.annotations["a.b/c"]']
    - name: labelled
      watch: { apiVersion: v1, kind: Event, namespaceSelector: { matchLabels: { team: a } }, lastBody: Metadata, object: Metadata, changedFields: [.metadata] }
  egress: [{ host: "[::1]", ports: [80, 80] }, { host: Hooks.Slack.com }]
  env:
    - { name: TOKEN, valueFrom: { secretKeyRef: { name: slack, key: token } } }
    - { name: MODE, value: fast }
  delivery: { timeout: 1m30s }`);
    expect(lines).toEqual([]);
    expect(functions[0]?.triggers).toMatchObject([
      {
        namespaces: { type: "names", names: ["team-a", "team-b"] },
        labelSelector: "a=,m in (x,y),z=1",
        fieldSelector: "metadata.name!=a,metadata.name=b",
        events: ["Added", "Deleted", "Modified"],
        changedFields: [["data"], ["metadata", "annotations", "a.b/c"]],
        object: "Full",
      },
      { namespaces: { type: "labels", labelSelector: "team=a" }, lastBody: "Metadata", object: "Metadata" },
    ]);
    expect(functions[0]).toMatchObject({
      egress: [
        { host: "::1", ports: [80] },
        { host: "hooks.slack.com", ports: [443] },
      ],
      env: [
        { name: "TOKEN", secretKeyRef: { name: "slack", key: "token", optional: false } },
        { name: "MODE", value: "fast" },
      ],
      delivery: { timeoutMs: 90_000 },
    });
  });
});
