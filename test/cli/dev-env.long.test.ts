import { join } from "node:path";
import { expect, test } from "vitest";
import { folderOf } from "../tools/folder.ts";
import { manifest, Session } from "./session.ts";

const env = "  env: [{ name: TOKEN, valueFrom: { secretKeyRef: { name: bank, key: token } } }]";

const project = (more: Readonly<Record<string, string>>) =>
  folderOf({
    "functions/pay/function.yaml": manifest("pay", env, "{ apiVersion: v1, kind: Namespace }"),
    "functions/pay/handler.ts": `export default (event, ctx) => ctx.log.info("length " + ctx.env.TOKEN.length + " " + ctx.env.TOKEN);`,
    ...more,
  });

test("`dev` takes a Secret's variable from the .env next to the functions folder, and never prints its value", async () => {
  const folder = project({ ".env": "# comment\nTOKEN='t0ken-of-bank'\n" });
  const dev = new Session(["dev"], {}, folder);
  await dev.says(/length 13 /);
  expect(dev.output).not.toContain("t0ken-of-bank");
  dev.signal("SIGINT");
  expect(await dev.end()).toBe(0);
});

test("`dev` names the variable and the file where neither the cluster nor .env has it", async () => {
  const functions = join(project({ ".env": "OTHER=1\n" }), "functions");
  const dev = new Session(["dev"], {}, join(functions, ".."));
  await dev.says(/WF_ACCESS_ENV .*there is no secrets\/bank in namespace default, and TOKEN is not in \.env/);
  dev.signal("SIGINT");
  expect(await dev.end()).toBe(0);
});
