import { afterAll, describe, expect, it } from "vitest";
import { WatchfireError } from "../../../runtime/base/errors.ts";
import { askOurs, outcomeOf, printedInfo } from "./asked.ts";
import { casesOf, expectedOf, informedCasesOf } from "./cases.ts";
import { openSite } from "./site.ts";

const site = await openSite();
afterAll(() => site.close());

describe("a kubeconfig leads to the server, and as the user, that kubectl takes from it", () => {
  it.each(casesOf(site).map((each) => [each.name, each] as const))("%s", async (_name, each) => {
    const asked = await askOurs(site, each);
    expect(outcomeOf(asked), String(asked.refusal)).toEqual(expectedOf(each.answer));
    if (asked.seen) return;
    expect(asked.refusal).toBeInstanceOf(WatchfireError);
    expect((asked.refusal as WatchfireError).code).toMatch(/^WF_KUBE_/);
  });
});

describe("a plugin is told of its cluster what kubectl tells it", () => {
  it.each(informedCasesOf(site).map((each) => [each.name, each] as const))("%s", async (_name, each) => {
    expect(printedInfo(await askOurs(site, each))).toEqual(each.info);
  });
});
