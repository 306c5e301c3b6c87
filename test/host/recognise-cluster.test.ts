import { expect, test } from "vitest";
import { recogniseCluster } from "../../runtime/host/recognise-cluster.ts";
import { ApiError } from "../../runtime/kube/api-error.ts";
import { VirtualClock } from "../virtual-clock.ts";

test("a cluster that is away at the start, or refuses the credentials, is waited for with the reason by its code", async () => {
  const clock = new VirtualClock();
  const waits: (string | undefined)[] = [];
  const answers = [
    new Error("connect ECONNREFUSED 10.0.0.1:443"),
    new ApiError({ status: 401, reason: "Unauthorized", message: "Unauthorized" }),
    { metadata: { uid: "the-cluster" } },
  ];
  const json = async () => {
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const options = { transport: { json, description: "https://10.0.0.1" }, clock, log: { warn: () => {} } };
  const found = recogniseCluster(options as never, new AbortController().signal, (why) => void waits.push(why));
  await clock.advance(10_000);
  expect(await found).toBe("the-cluster");
  expect(waits).toEqual([
    expect.stringMatching(/^WF_KUBE_UNREACHABLE: .*ECONNREFUSED/),
    expect.stringMatching(/^WF_KUBE_CREDENTIALS: /),
    undefined,
  ]);
});
