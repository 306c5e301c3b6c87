import { join } from "node:path";
import { expect, test } from "vitest";
import { dotEnv } from "../../runtime/dev/dot-env.ts";
import { folderOf } from "../tools/folder.ts";

test("a variable of .env with a function's name is that function's alone, and precedes the common one", () => {
  const folder = folderOf({ ".env": "URL=all\nCRASH_NOTIFY__URL=hooks\nMIRROR__TOKEN=secret\n" });
  const local = dotEnv(join(folder, "functions"));
  expect(local.read("crash-notify")).toMatchObject({ URL: "hooks" });
  expect(local.read("crash")).toMatchObject({ URL: "all" });
  expect(local.read("mirror")).toMatchObject({ URL: "all", TOKEN: "secret" });
  expect(local.read("crash-notify")).not.toHaveProperty("TOKEN");
  expect(dotEnv(join(folder, "elsewhere", "functions")).read("mirror")).toBeUndefined();
});
