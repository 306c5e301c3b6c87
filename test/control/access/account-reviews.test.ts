import { expect, test } from "vitest";
import { AccountReviews, audienceOfRuntime } from "../../../runtime/control/access/account-reviews.ts";
import { ApiError } from "../../../runtime/kube/api-error.ts";
import type { KubeRequest, KubeTransport } from "../../../runtime/kube/transport.ts";
import { VirtualClock } from "../../virtual-clock.ts";

interface Review {
  readonly kind: string;
  readonly spec: Readonly<Record<string, unknown>>;
}

/** Reviews against an API server that answers as `answer` says. `asked`: what it was asked. */
function reviewed(answer: (review: Review) => unknown) {
  const clock = new VirtualClock();
  const asked: Review[] = [];
  const transport = {
    json: async ({ body }: KubeRequest) => {
      const review = JSON.parse(String(body)) as Review;
      asked.push(review);
      return { status: answer(review) };
    },
  } as unknown as KubeTransport;
  const reviews = new AccountReviews({ transport, namespace: "ops", account: "watchfire", clock });
  return { reviews, asked, clock };
}

const ada = { authenticated: true, user: { username: "ada", groups: ["oncall"] } };
const allowing = ({ kind }: Review) => (kind === "TokenReview" ? ada : { allowed: true });
const jwt = (claims: object) => `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.s`;

test("an answer counts for a minute, also a refusal, and for whoever asks meanwhile", async () => {
  let allowed = false;
  const { reviews, asked, clock } = reviewed(({ kind }) => (kind === "TokenReview" ? ada : { allowed }));
  const look = async () => reviews.may(await reviews.callerOf("t"), "update", "greet");
  expect(await Promise.all([look(), look()])).toEqual([false, false]);
  allowed = true;
  expect(await look()).toBe(false);
  expect(asked).toHaveLength(2);
  await clock.advance(60_001);
  expect(await look()).toBe(true);
  expect(asked).toHaveLength(4);
  expect(asked.at(-1)?.spec).toMatchObject({
    user: "ada",
    groups: ["oncall"],
    resourceAttributes: {
      group: "watchfire.dev",
      resource: "functions",
      verb: "update",
      name: "greet",
      namespace: "ops",
    },
  });
});

test("a function of another namespace's set is its team's as well, by the right on it there, and nobody else's", async () => {
  const { reviews, asked } = reviewed(({ kind, spec }) => {
    if (kind === "TokenReview") return ada;
    const { namespace, name } = spec.resourceAttributes as { namespace: string; name?: string };
    return { allowed: namespace === "team-a" && name === "greet" };
  });
  const caller = await reviews.callerOf("t");
  const may = (name?: string) => reviews.may(caller, "update", name);
  expect([await may("greet.team-a"), await may("greet.team-b"), await may("greet"), await may()]).toEqual([
    true,
    false,
    false,
    false,
  ]);
  const before = asked.length;
  expect([await may("greet.team-a.x"), await may("greet.")]).toEqual([false, false]);
  expect(asked.slice(before).map(({ spec }) => (spec.resourceAttributes as { namespace: string }).namespace)).toEqual([
    "ops",
    "ops",
  ]);
});

test("a token that is not accepted is refused", async () => {
  const { reviews } = reviewed(() => ({ authenticated: false }));
  await expect(reviews.callerOf("t")).rejects.toThrow("WF_CONTROL_TOKEN");
});

test("a review that fails refuses, says why, and is made again", async () => {
  let isBroken = true;
  const { reviews, asked } = reviewed((review) => {
    if (!isBroken) return allowing(review);
    throw new ApiError({ status: 403, message: "tokenreviews is forbidden" });
  });
  await expect(reviews.callerOf("t")).rejects.toThrow(/WF_CONTROL_REVIEW.*the runtime may not create them/);
  isBroken = false;
  const caller = await reviews.callerOf("t");
  isBroken = true;
  await expect(reviews.may(caller, "get", undefined)).rejects.toThrow("WF_CONTROL_REVIEW");
  isBroken = false;
  expect(await reviews.may(caller, "get", undefined)).toBe(true);
  expect(asked).toHaveLength(4);
});

test("a token that ends within the minute counts no longer than it lives", async () => {
  const { reviews, clock } = reviewed(allowing);
  const token = jwt({ exp: clock.now() / 1000 + 30 });
  expect(await reviews.callerOf(token)).toMatchObject({ kind: "account" });
  await clock.advance(30_001);
  await expect(reviews.callerOf(token)).rejects.toThrow("WF_CONTROL_TOKEN");
});

test("a token for this runtime is reviewed for its audience, any other for the API server's own", async () => {
  const audience = audienceOfRuntime("ops", "watchfire");
  const { reviews, asked } = reviewed(() => ({ ...ada, audiences: [audience] }));
  await reviews.callerOf(jwt({ aud: [audience] }));
  await reviews.callerOf(jwt({ aud: audienceOfRuntime("ops", "another") }));
  expect(asked.map(({ spec }) => spec.audiences)).toEqual([[audience], undefined]);
});

test("an authenticator that did not check the audience is not believed", async () => {
  const { reviews } = reviewed(() => ada);
  await expect(reviews.callerOf(jwt({ aud: [audienceOfRuntime("ops", "watchfire")] }))).rejects.toThrow(
    "WF_CONTROL_TOKEN",
  );
});

test("many tokens are refused without a review, until there is room for more", async () => {
  const { reviews, asked, clock } = reviewed(() => ({ authenticated: false }));
  const looks = await Promise.allSettled(Array.from({ length: 200 }, (_, index) => reviews.callerOf(`t${index}`)));
  const busy = looks.filter((each) => each.status === "rejected" && /too many callers/.test(String(each.reason)));
  expect([asked.length, busy.length]).toEqual([50, 150]);
  await clock.advance(1_000);
  await expect(reviews.callerOf("one more")).rejects.toThrow("WF_CONTROL_TOKEN");
});

test("only so many tokens are kept", async () => {
  const { reviews, asked, clock } = reviewed(allowing);
  for (let index = 0; index < 513; index++) {
    await reviews.callerOf(`t${index}`);
    if (index % 40 === 39) await clock.advance(2_000);
  }
  const before = asked.length;
  await reviews.callerOf("t512");
  expect(asked.length).toBe(before);
});

test("invented tokens displace no account that is known, and do not use up its reviews", async () => {
  const { reviews, asked, clock } = reviewed(({ kind, spec }) =>
    kind === "TokenReview" ? (spec.token === "hers" ? ada : { authenticated: false }) : { allowed: true },
  );
  await reviews.callerOf("hers");
  for (let index = 0; index < 600; index++) {
    await reviews.callerOf(`invented ${index}`).catch(() => undefined);
    if (index % 20 === 19) await clock.advance(1_000);
  }
  const before = asked.length;
  await reviews.callerOf("hers");
  expect(asked.length).toBe(before);
  await clock.advance(60_000);
  await Promise.allSettled(Array.from({ length: 200 }, (_, index) => reviews.callerOf(`more ${index}`)));
  expect(await reviews.may(await reviews.callerOf("hers"), "update", "greet")).toBe(true);
});
