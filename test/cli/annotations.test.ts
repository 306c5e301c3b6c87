import { join } from "node:path";
import { expect, it } from "vitest";
import { githubAnnotation, junitOf } from "../../runtime/cli/annotations.ts";

it("JUnit counts what failed, and a message cannot end its element or hold what XML has not", () => {
  const place = { file: "a.yaml" };
  const message = 'kind: <Pod> & "co" \u001b[31m]]>';
  const xml = junitOf("watchfire validate", [
    { name: "good", faults: [] },
    { name: "a.yaml:3", faults: [{ code: "WF_X", message, place }] },
  ]);
  expect(xml).toContain('<testsuites name="watchfire validate" tests="2" failures="1">');
  expect(xml).toContain('<testcase classname="watchfire validate" name="good"/>');
  expect(xml).toContain("kind: &lt;Pod&gt; &amp; &quot;co&quot; \ufffd[31m]]&gt;</failure>");
});

it("a GitHub annotation names the file from the working directory, and stays one line", () => {
  const place = { file: join(process.cwd(), "functions/a,b/function.yaml"), line: 3, column: 7 };
  const annotation = githubAnnotation("error", { code: "WF_X", message: "100% wrong\nfor: two reasons", place });
  expect(annotation).toBe(
    "::error file=functions/a%2Cb/function.yaml,line=3,col=7,title=WF_X::100%25 wrong%0Afor: two reasons",
  );
  expect(githubAnnotation("warning", { code: "WF_Y", message: "no place" })).toBe("::warning title=WF_Y::no place");
});
