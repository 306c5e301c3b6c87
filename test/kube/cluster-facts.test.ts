import { expect, onTestFinished, test } from "vitest";
import { clusterIdentity } from "../../runtime/kube/cluster-facts.ts";
import { contactFault } from "../../runtime/kube/contact-fault.ts";
import { connectDirect } from "../../runtime/kube/direct.ts";
import { type Exchange, ScriptedServer } from "../faults/api-server.ts";
import { VirtualClock } from "../virtual-clock.ts";

/** A transport to a server with the same answer for all requests. */
async function answering(answer: (exchange: Exchange) => void) {
  const server = await ScriptedServer.start();
  server.script(() => true, answer);
  const transport = connectDirect({ server: server.url, clock: new VirtualClock() });
  onTestFinished(async () => {
    await transport.close();
    await server.close();
  });
  return transport;
}

const page = "<html><h1>Watchfire</h1></html>";

test.each<[string, number, string]>([
  ["a page", 200, page],
  ["an empty object", 200, "{}"],
  ["a page that says 404", 404, page],
  ["a line that says 404", 404, "404 page not found"],
  ["an object that says 404", 404, `{"error":"there are /livez and /readyz"}`],
  ["a page that says 403", 403, page],
  ["a redirect to a page", 302, ""],
])("a server that answers with %s is no API server", async (_, status, body) => {
  const transport = await answering((each) => each.reply(status, body));
  const fault = await clusterIdentity(transport).catch((error: unknown) => contactFault(error, "the server"));
  expect(fault).toMatchObject({ code: "WF_KUBE_PROTOCOL" });
});

test.each([502, 503, 504, 429])(
  "a gateway's own %i tells of a server that is away, not of a wrong one",
  async (status) => {
    const transport = await answering((each) => each.reply(status, page));
    const fault = await clusterIdentity(transport).catch((error: unknown) => contactFault(error, "the server"));
    expect(fault).toMatchObject({ code: "WF_KUBE_UNREACHABLE" });
  },
);

test.each<[number, string]>([
  [403, "Forbidden"],
  [404, "NotFound"],
])("an API server's own %i leaves the cluster unknown", async (status, reason) => {
  const transport = await answering((each) => each.status(status, reason));
  expect(await clusterIdentity(transport)).toMatchObject({ uid: undefined, status });
});

test("an API server's Status counts as one where it gives no reason", async () => {
  const status = JSON.stringify({ kind: "Status", apiVersion: "v1", status: "Failure", code: 403, message: "no" });
  const transport = await answering((each) => each.reply(403, status));
  expect(await clusterIdentity(transport)).toMatchObject({ uid: undefined, status: 403, message: "no" });
});

test("a proxy that refuses one namespace in its own words, and lets the rest through, leaves the cluster unknown", async () => {
  const groups = JSON.stringify({ kind: "APIGroupList", apiVersion: "v1", groups: [] });
  const transport = await answering((each) =>
    each.path === "/apis" ? each.reply(200, groups) : each.reply(403, page),
  );
  expect(await clusterIdentity(transport)).toMatchObject({ uid: undefined, status: 403 });
});
