import { afterAll, expect, test } from "vitest";
import { type OidcSettings, OidcToken } from "../../runtime/kube/oidc.ts";
import { ScriptedServer } from "../faults/api-server.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { idToken } from "./kubeconfig/site.ts";

const provider = await ScriptedServer.start();
afterAll(() => provider.close());

const settings = (more: Partial<OidcSettings>): OidcSettings => ({
  issuer: provider.url,
  clientId: "c",
  clientSecret: "",
  idToken: "",
  refreshToken: "first",
  tls: { serverName: "", insecure: false },
  ...more,
});

test("an id token is renewed ten seconds before it ends, once for all who wait, and by the newest refresh token", async () => {
  const clock = new VirtualClock();
  const seconds = Math.ceil(clock.now() / 1000) + 100;
  let renewals = 0;
  provider.script(
    () => true,
    (exchange) => {
      if (exchange.path.startsWith("/.well-known/")) {
        return exchange.reply(200, JSON.stringify({ token_endpoint: `${provider.url}/token` }));
      }
      renewals += 1;
      const answer = { id_token: idToken(seconds + 100 * renewals), refresh_token: `after ${renewals}` };
      return exchange.reply(200, JSON.stringify(answer));
    },
  );
  const token = new OidcToken(settings({ idToken: idToken(seconds) }), {}, clock);
  await clock.advance(seconds * 1000 - 10_001 - clock.now());
  expect(await token.token()).toBe(idToken(seconds));
  await clock.advance(1);
  const all = await Promise.all([token.token(), token.token(), token.token()]);
  expect(new Set(all)).toEqual(new Set([idToken(seconds + 100)]));
  expect(renewals).toBe(1);
  await clock.advance(100_000);
  expect(await token.token()).toBe(idToken(seconds + 200));
});
