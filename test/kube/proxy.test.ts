import { createServer } from "node:http";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { systemClock } from "../../runtime/base/clock.ts";
import { HttpTransport } from "../../runtime/kube/http-transport.ts";
import { fixedIdentity } from "../../runtime/kube/identity.ts";
import { proxyFromEnvironment } from "../../runtime/kube/proxy.ts";
import { ScriptedServer } from "../faults/api-server.ts";

const environment = {
  HTTPS_PROXY: "http://proxy:3128",
  NO_PROXY: ".corp,exact.org,10.0.0.0/8,192.168.1.1,host.net:8443",
};

test.each([
  ["https://api.example.com", "http://proxy:3128"],
  ["https://api.corp", undefined],
  ["https://corp", "http://proxy:3128"],
  ["https://exact.org:6443", undefined],
  ["https://sub.exact.org", undefined],
  ["https://inexact.org", "http://proxy:3128"],
  ["https://10.1.2.3:6443", undefined],
  ["https://11.1.2.3:6443", "http://proxy:3128"],
  ["https://192.168.1.1", undefined],
  ["https://host.net:8443", undefined],
  ["https://host.net", "http://proxy:3128"],
  ["https://127.0.0.1:6443", undefined],
  ["https://localhost:6443", undefined],
  ["https://[::1]:6443", undefined],
  ["http://api.example.com", undefined],
])("the way to %s goes by %s", (server, proxy) => {
  expect(proxyFromEnvironment(server, environment)).toBe(proxy);
});

test("requests and watches go through the proxy that is named", async () => {
  const server = await ScriptedServer.start();
  server.script(
    () => true,
    (each) => each.reply(200, '{"ok":true}'),
  );
  const asked: string[] = [];
  const proxy = createServer((request, response) => {
    asked.push(request.url ?? "");
    const target = new URL(request.url ?? "");
    const upstream = connect(Number(target.port), target.hostname, () =>
      upstream.write(`GET ${target.pathname} HTTP/1.1\r\nhost: ${target.host}\r\n\r\n`),
    );
    upstream.once("data", () => {
      upstream.destroy();
      response.setHeader("content-type", "application/json").end('{"ok":true}');
    });
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const address = proxy.address() as { port: number };
  const transport = new HttpTransport({
    server: server.url,
    identity: fixedIdentity({ headers: {}, tls: {} }),
    clock: systemClock,
    userAgent: "watchfire/test",
    description: "",
    proxy: `http://127.0.0.1:${address.port}`,
  });
  expect(await transport.json({ method: "GET", path: "/api" })).toEqual({ ok: true });
  const watch = await transport.request({ method: "GET", path: "/watch", purpose: "watch" });
  for await (const _ of watch.body);
  expect(asked).toEqual([`${server.url}/api`, `${server.url}/watch`]);
  await transport.close();
  await server.close();
  await new Promise((resolve) => proxy.close(resolve));
});
