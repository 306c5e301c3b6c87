import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { parseSize } from "../../runtime/manifest/quantity.ts";
import { chart, containers, render } from "./helm.ts";

interface Size {
  readonly resources: Resources;
  readonly executor: Resources;
  readonly cacheLimit: string;
  readonly historySize: string;
}

type Resources = Readonly<Record<"requests" | "limits", { readonly memory: string; readonly cpu?: string }>>;

const sizes = parse(readFileSync(join(chart, "files/sizes.yaml"), "utf8")) as Readonly<Record<string, Size>>;

/** Returns the parts of a rendered pod that a size sets. */
async function sizeOf(...values: readonly string[]) {
  const { watchfire, executor } = containers(await render(...(values.length > 0 ? ["--set", values.join()] : [])));
  const option = (name: string) =>
    watchfire.args.find((arg: string) => arg.startsWith(`--${name}=`))?.slice(name.length + 3);
  return {
    resources: watchfire.resources,
    executor: executor.resources,
    cacheLimit: option("cache-limit"),
    historySize: option("history-size"),
  };
}

describe("a size", () => {
  it.each(Object.entries(sizes))("%s sets both containers, the cache and the history", async (name, size) => {
    expect(await sizeOf(`size=${name}`)).toEqual(size);
  });

  it("is medium by default", async () => {
    expect(await sizeOf()).toEqual(sizes.medium);
  });

  it("gives way to each value that the release sets, and keeps the others", async () => {
    const { small } = sizes;
    expect(
      await sizeOf("size=small", "resources.limits.memory=1Gi", "executor.resources.requests.cpu=1", "history.size=0"),
    ).toEqual({
      ...small,
      resources: { ...small?.resources, limits: { memory: "1Gi" } },
      executor: { ...small?.executor, requests: { ...small?.executor.requests, cpu: 1 } },
      historySize: "0",
    });
  });

  it("gives way to null, which removes an amount or all of a group", async () => {
    const { resources, executor } = await sizeOf("resources.requests.cpu=null", "executor.resources.requests=null");
    expect(resources.requests).toEqual({ memory: sizes.medium?.resources.requests.memory });
    expect(executor).toEqual({ limits: sizes.medium?.executor.limits });
  });

  it("of an unknown name is refused", async () => {
    await expect(sizeOf("size=tiny")).rejects.toThrow("/size");
  });
});

it("the small size asks for what one small container does", () => {
  const sum = (of: "requests" | "limits") => {
    const amounts = [sizes.small?.resources, sizes.small?.executor].map(
      (each) => parseSize(each?.[of].memory ?? "") ?? 0,
    );
    return amounts.reduce((all, each) => all + each, 0) / 2 ** 20;
  };
  expect(sum("requests")).toBeLessThanOrEqual(160);
  expect(sum("limits")).toBeLessThanOrEqual(256);
});
