import { describe, expect, it } from "vitest";
import { type Command, help, parse } from "../../runtime/cli/command.ts";

const command: Command = {
  name: "brew",
  summary: "makes tea",
  options: {
    cups: { value: "N", summary: "how many", default: "1" },
    hot: { summary: "with heat" },
  },
  run: async () => 0,
};

describe("a command line", () => {
  it("fills in the defaults", () => {
    expect(parse(command, []).options).toEqual({ cups: "1" });
  });

  it("takes values and switches", () => {
    const { options, switches } = parse(command, ["--cups", "3", "--hot"]);
    expect(options.cups).toBe("3");
    expect(switches.has("hot")).toBe(true);
  });

  it.each([["--sugar"], ["milk"], ["--cups"]])("what it does not know is refused with a code: %s", (argument) => {
    expect(() => parse(command, [argument])).toThrow(expect.objectContaining({ code: "WF_CLI_USAGE", blame: "user" }));
  });

  it("the help names every option", () => {
    for (const name of Object.keys(command.options)) expect(help(command)).toContain(`--${name}`);
  });
});
