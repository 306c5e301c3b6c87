import { describe, expect, it } from "vitest";
import { command, help, parse } from "../../runtime/cli/command.ts";

const brew = command({
  name: "brew",
  summary: "makes tea",
  options: {
    cups: { value: "N", summary: "how many", default: "1" },
    milk: { value: "ML", summary: "none without it" },
    with: { value: "WHAT", summary: "what goes in", many: true },
    hot: { summary: "with heat" },
    output: { value: "AS", short: "o", choices: ["text", "json"], summary: "how it is told", default: "text" },
  },
  run: async () => 0,
});

describe("a command line", () => {
  it("fills in the defaults", () => {
    const { options, given } = parse(brew, []);
    expect(options).toEqual({ cups: "1", with: [], output: "text" });
    expect(given.size).toBe(0);
  });

  it("takes values and switches, and tells which were given", () => {
    const { options, given } = parse(brew, ["--cups", "3", "--milk=20", "--hot"]);
    expect(options).toEqual({ cups: "3", milk: "20", with: [], output: "text" });
    expect([...given]).toEqual(["cups", "milk", "hot"]);
  });

  it.each([
    [["--sugar"], "there is no option --sugar"],
    [["-c", "3"], "there is no option -c"],
    [["--cup", "3"], "did you mean --cups?"],
    [["milk"], "only options, got milk"],
    [["--cups"], "--cups needs a value: N"],
    [["--cups="], "--cups needs a value: N"],
    [["--cups", "--hot"], "--cups needs a value: N"],
    [["--hot=very"], "--hot takes no value, got very"],
    [["--output", "xml"], "--output takes text or json, got xml"],
    [["-o"], "-o needs a value: AS"],
  ])("what it cannot use is refused with a code, and named: %s", (args, words) => {
    const usage = { code: "WF_CLI_USAGE", blame: "user", message: expect.stringContaining(words) };
    expect(() => parse(brew, args)).toThrow(expect.objectContaining(usage));
  });

  it("a value may begin with a dash", () => {
    expect(parse(brew, ["--cups", "-1", "--milk=--"]).options).toMatchObject({ cups: "-1", milk: "--" });
  });

  it("takes all values of an option that may be given again, in their order, and of another the last", () => {
    const { options } = parse(brew, ["--with", "lemon", "--cups=1", "--with=honey", "--cups=2"]);
    expect(options).toMatchObject({ with: ["lemon", "honey"], cups: "2" });
    expect(help(brew)).toMatch(/--with WHAT +what goes in \(may be given again\)/);
  });

  it("takes an option by its letter, in each way that shells' users write it", () => {
    for (const words of [["-o", "json"], ["-ojson"], ["--output=json"]]) {
      const { options, given } = parse(brew, words);
      expect([options.output, ...given]).toEqual(["json", "output"]);
    }
    expect(help(brew)).toMatch(/-o, --output AS +how it is told/);
  });

  it("the help names every option", () => {
    for (const name of Object.keys(brew.options)) expect(help(brew)).toContain(`--${name}`);
  });
});
