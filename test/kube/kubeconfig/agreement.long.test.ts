import { afterAll, describe, expect, it } from "vitest";
import { kubectlPath } from "../../tools/kubectl.ts";
import { askKubectl, outcomeOf, printedInfo } from "./asked.ts";
import { casesOf, expectedOf, informedCasesOf } from "./cases.ts";
import { openSite } from "./site.ts";

// `cases.test.ts` compares the runtime's own reader with the same cases.
const site = await openSite();
afterAll(() => site.close());
const kubectl = await kubectlPath();

describe("kubectl itself answers as the table says", () => {
  it.each(casesOf(site).map((each) => [each.name, each] as const))("%s", async (_name, each) => {
    const asked = await askKubectl(kubectl, site, each);
    expect(outcomeOf(asked), String(asked.refusal)).toEqual(expectedOf(each.answer));
  });
});

describe("kubectl tells a plugin of its cluster what the table says", () => {
  it.each(informedCasesOf(site).map((each) => [each.name, each] as const))("%s", async (_name, each) => {
    expect(printedInfo(await askKubectl(kubectl, site, each))).toEqual(each.info);
  });
});
