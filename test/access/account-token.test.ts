import { expect, test } from "vitest";
import { FunctionAccounts } from "../../runtime/access/function-accounts.ts";
import { AccountToken } from "../../runtime/kube/account-token.ts";
import { Agents } from "../../runtime/kube/agents.ts";
import { withoutClient } from "../../runtime/kube/identity.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { apiServer, type Received, status } from "./api-server.ts";

const tokenPath = "/api/v1/namespaces/wf/serviceaccounts/watchfire-f/token";
const configMap = "/api/v1/namespaces/demo/configmaps/settings";

/** Issues tokens `token-1`, `token-2`, …; `refuses` selects those that the server does not accept. */
async function issuer({
  seconds = 600,
  refuses = (_token: string): boolean => false,
  answer = (_nth: number): number => 200,
} = {}) {
  let issued = 0;
  const bearerOf = ({ headers }: Received) => headers.authorization?.replace("Bearer ", "") ?? "";
  const server = await apiServer((request) => {
    if (request.path === tokenPath) {
      const code = answer(issued + 1);
      if (code !== 200) return status(code, code === 403 ? "Forbidden" : code === 404 ? "NotFound" : "InternalError");
      issued++;
      return { body: { spec: { expirationSeconds: seconds }, status: { token: `token-${issued}` } } };
    }
    return refuses(bearerOf(request)) ? status(401, "Unauthorized") : { body: { kind: "ConfigMap" } };
  });
  const clock = new VirtualClock();
  const parts = { transport: server.transport, namespace: "wf", clock, random: () => 0 };
  const tokens = new AccountToken({ ...parts, account: "watchfire-f" });
  const requests = () => server.received.filter(({ path }) => path === tokenPath);
  const used = () => server.received.filter(({ path }) => path === configMap).map(bearerOf);
  return { ...server, clock, parts, tokens, requests, used };
}

test("those who ask at once share one request, for the API server's audience and ten minutes", async () => {
  const { tokens, requests } = await issuer();
  const all = await Promise.all(Array.from({ length: 20 }, () => tokens.token()));
  expect(new Set(all)).toEqual(new Set(["token-1"]));
  expect(requests().map(({ method, body }) => ({ method, body }))).toEqual([
    {
      method: "POST",
      body: { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { expirationSeconds: 600 } },
    },
  ]);
});

test("a token is renewed at 80 % of the life that the server gave it, and nobody waits for it", async () => {
  const { tokens, clock, requests } = await issuer({ seconds: 1000 });
  await tokens.token();
  await clock.advance(799_999);
  expect(await tokens.token()).toBe("token-1");
  expect(requests()).toHaveLength(1);
  await clock.advance(1);
  expect(await tokens.token()).toBe("token-1");
  await expect.poll(() => tokens.token()).toBe("token-2");
  expect(requests()).toHaveLength(2);
});

test("jitter renews up to a tenth of the life earlier, never later", async () => {
  const { parts, clock, requests } = await issuer({ seconds: 1000 });
  const tokens = new AccountToken({ ...parts, random: () => 0.999, account: "watchfire-f" });
  await tokens.token();
  await clock.advance(700_000);
  await tokens.token();
  expect(requests()).toHaveLength(1);
  await clock.advance(200);
  await tokens.token();
  await expect.poll(() => requests().length).toBe(2);
});

test("while renewing fails, the token stays in use until it ends, and is asked for again every five seconds at most", async () => {
  let broken = false;
  const { tokens, clock, requests } = await issuer({ answer: () => (broken ? 500 : 200) });
  await tokens.token();
  broken = true;
  await clock.advance(480_000);
  expect(await tokens.token()).toBe("token-1");
  await expect.poll(() => requests().length).toBe(2);
  await new Promise(setImmediate);
  expect(await tokens.token()).toBe("token-1");
  expect(requests()).toHaveLength(2);
  await clock.advance(120_000);
  await expect(tokens.token()).rejects.toThrow();
  broken = false;
  expect(await tokens.token()).toBe("token-2");
});

test("a request that is answered 401 is sent again with a new token", async () => {
  const { parts, clock, used } = await issuer({ refuses: (token) => token === "token-1" });
  const accounts = new FunctionAccounts({ ...parts, account: "watchfire" });
  const transport = accounts.transport("f");
  // A token issued at this moment is not the cause, so only an older one is replaced.
  expect((await transport.request({ method: "GET", path: configMap })).status).toBe(401);
  await clock.advance(5_000);
  expect((await transport.request({ method: "GET", path: configMap })).status).toBe(200);
  expect(used().at(-1)).toBe("token-2");
});

test.each([
  [404, "there is no ServiceAccount watchfire-f in namespace wf"],
  [403, 'create serviceaccounts/token "watchfire-f" in namespace "wf" is refused'],
])(
  "without the account or the right to act as it (%i), it says what is missing and that it is forbidden",
  async (code, words) => {
    const { tokens } = await issuer({ answer: () => code });
    await expect(tokens.token()).rejects.toMatchObject({
      code: "WF_KUBE_FORBIDDEN",
      message: expect.stringContaining(words),
    });
  },
);

test("functions have accounts of their own over the runtime's connections, whose token stays the runtime's", async () => {
  const { parts, transport, received } = await issuer();
  const accounts = new FunctionAccounts({ ...parts, account: "watchfire" });
  await accounts.transport("f").request({ method: "GET", path: configMap });
  await transport.request({ method: "GET", path: configMap });
  expect(received.map(({ path, headers }) => [path, headers.authorization])).toEqual([
    [tokenPath, undefined],
    [configMap, "Bearer token-1"],
    [configMap, undefined],
  ]);
  await accounts.transport("f").close();
  expect((await transport.request({ method: "GET", path: configMap })).status).toBe(200);
});

test("a token never travels with a client certificate, as whose owner the API server would take the request", () => {
  const tls = { ca: "a", cert: "c", key: "k", servername: "s" };
  expect(withoutClient(tls)).toEqual({ ca: "a", servername: "s" });
  expect(withoutClient(tls)).toBe(withoutClient(tls));
});

test("two who take turns at the connections do not retire each other's", async () => {
  const clock = new VirtualClock();
  const agents = new Agents(undefined, clock);
  const runtime = { ca: "a", cert: "1" };
  const first = agents.for(runtime, "rest");
  const functions = agents.for(withoutClient(runtime), "rest", "accounts");
  agents.for(runtime, "rest");
  agents.for(withoutClient(runtime), "rest", "accounts");
  await clock.advance(3_600_000);
  expect(agents.for(runtime, "rest")).toBe(first);
  expect(functions).toMatchObject({ closed: false });
  await agents.close();
});
