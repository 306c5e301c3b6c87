import { delimiter, join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { readFirstDocument } from "../../../runtime/document/document.ts";
import { goYaml } from "../../../runtime/kube/go-yaml.ts";
import { loadKubeconfigs } from "../../../runtime/kube/kubeconfig-loading.ts";
import { folderOf } from "../../tools/folder.ts";

const names = fc.uniqueArray(fc.constantFrom<string>("a", "b", "c", ""));
const file = fc.record({ users: names, current: fc.constantFrom("", "a", "b") });

test("of several kubeconfigs the first that names a user, or a current context, has it whole", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(file, { minLength: 1, maxLength: 4 }), async (files) => {
      const texts = files.map(({ users, current }, index) =>
        JSON.stringify({
          "current-context": current,
          users: users.map((name) => ({ name, user: index % 2 ? { token: `${index}` } : { tokenFile: `${index}` } })),
        }),
      );
      const folder = folderOf(Object.fromEntries(texts.map((text, index) => [`${index}/config`, text])));
      const KUBECONFIG = texts.map((_, index) => join(folder, `${index}/config`)).join(delimiter);
      const { config } = await loadKubeconfigs({ environment: { KUBECONFIG } });
      for (const name of ["a", "b", "c", ""]) {
        const first = files.findIndex(({ users }) => users.includes(name));
        const { token, tokenFile } = config.users.get(name) ?? {};
        if (first < 0) expect(config.users.has(name)).toBe(false);
        else if (first % 2) expect([token, tokenFile]).toEqual([`${first}`, ""]);
        else expect([token, tokenFile]).toEqual(["", join(folder, `${first}/${first}`)]);
      }
      expect(config.currentContext).toBe(files.find(({ current }) => current !== "")?.current ?? "");
    }),
    { numRuns: 50 },
  );
});

test("a text in quotes is that text, whatever Go would take it for without them", () => {
  const odd = fc.constantFrom("yes", "0123", "1e5", ".inf", "~", "null", "<<", "2001-02-03", "0x1F");
  fc.assert(
    fc.property(fc.oneof(odd, fc.string()), (text) => {
      expect(readFirstDocument(JSON.stringify({ token: text }), "config", goYaml)?.value).toEqual({ token: text });
    }),
  );
});
