import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { imageBill } from "../../deploy/image/bill.ts";
import { faultsOf } from "../../deploy/release/check.ts";
import { packageBill } from "../../deploy/release/sbom.ts";
import { chartAt, mentions, mentionsAt } from "../../deploy/release/version.ts";

const root = join(import.meta.dirname, "../..");
const textOf = (file: string) => readFileSync(join(root, file), "utf8");
const manifestOf = (folder: string) => JSON.parse(textOf(join(folder, "package.json")));
const { version } = manifestOf("runtime");

describe("a version", () => {
  it("is that of the packages, the checkout and the chart, and each changelog tells of it", () => {
    expect(faultsOf(`v${version}`).filter((fault) => !fault.startsWith(".changeset/"))).toEqual([]);
  });

  it("is not published under another one's tag", () => {
    expect(faultsOf("v9.9.9")).toContain(`the tag is v9.9.9, and the version ${version}`);
  });

  it("reaches every place of the chart that names it", () => {
    const text = chartAt("9.8.7", textOf("deploy/chart/Chart.yaml"));
    const { version: own, appVersion, annotations } = parse(text);
    expect([own, appVersion]).toEqual(["9.8.7", "9.8.7"]);
    expect(parse(annotations["artifacthub.io/images"])[0].image).toMatch(/:9\.8\.7$/);
    expect(text).not.toContain(version);
  });

  it("reaches every text that shows it beside Watchfire's name", () => {
    const texts = ["*.md", "{.github,runtime,sdk,deploy,functions}/**/{*.{md,ts,js,yaml,txt},*Dockerfile}"];
    const isMade = /node_modules|\.packages|\.image|CHANGELOG\.md|Chart\.yaml/;
    const files = globSync(texts, { cwd: root, exclude: (name) => isMade.test(name) });
    const shown = new RegExp(`watchfire.{0,20}\\b${version.replaceAll(".", "\\.")}\\b`);
    const showing = files.filter((file) => !isMade.test(file) && shown.test(textOf(file)));
    expect(showing.toSorted()).toEqual(mentions.toSorted());
    for (const file of mentions) expect(mentionsAt("9.8.7", textOf(file)), file).not.toMatch(shown);
  });
});

describe("a bill of materials", () => {
  it("of the runtime's package names all that it depends on, esbuild among it", () => {
    const { metadata, components } = packageBill("@watchfire/runtime");
    expect(metadata).toMatchObject({ component: { name: "@watchfire/runtime", version } });
    const { dependencies } = manifestOf("runtime");
    for (const [name, exact] of Object.entries(dependencies)) {
      const purl = `pkg:npm/${name.replace("@", "%40")}@${exact}`;
      expect(components).toContainEqual(expect.objectContaining({ name, purl }));
    }
    expect(components.map(({ name }) => name)).not.toContain("vitest");
  });

  it("of the image names Node, what was bundled and what was copied, each with its licence", () => {
    const bundled = [join(root, "node_modules/zod/index.js"), join(root, "runtime/base/config.ts")];
    const { components } = imageBill(bundled, version) as { components: { purl: string; licenses: object[] }[] };
    expect(components.map(({ purl }) => purl.replace(/@[^@]*$/, "")).sort()).toEqual([
      "pkg:generic/node",
      "pkg:npm/isolated-vm",
      "pkg:npm/node-gyp-build",
      "pkg:npm/zod",
    ]);
    expect(components.find(({ purl }) => purl.startsWith("pkg:generic/"))?.purl).toMatch(`@${process.versions.node}`);
    for (const { licenses } of components)
      expect(licenses).toEqual([{ expression: expect.stringMatching(/^[\w.-]+$/) }]);
  });
});
