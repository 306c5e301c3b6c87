import { WatchfireError } from "../base/errors.ts";
import { readVariables } from "../base/variables.ts";
import { systemReason } from "../base/wording.ts";
import { command } from "./command.ts";
import { invoke } from "./invoke.ts";
import { templates } from "./new-project/templates.ts";
import { FolderError, ProjectError } from "./new-project/write-files.ts";

export const init = command({
  name: "init",
  summary: "creates a project in a new folder: a function, its test, package.json, CI, Dockerfile",
  operands: "[NAME]",
  options: {
    name: {
      value: "NAME",
      summary: "the name of the project and of its folder, the same as NAME (default my-functions)",
    },
    template: { value: "NAME", summary: `one of ${Object.keys(templates).join(", ")} (default hello)` },
    packages: { value: "DIR", summary: "the folder of Watchfire's tarballs, as `npm run pack` writes it" },
    yes: { summary: "asks nothing; missing options have their defaults" },
  },
  async run({ options, operands, given }) {
    const [name, ...more] = options.name === undefined ? operands : [options.name, ...operands];
    if (more.length > 0) {
      throw new WatchfireError("WF_CLI_USAGE", { what: `init takes one NAME, got ${[name, ...more].join(" ")}` });
    }
    const { createProject } = await import("./new-project/create-project.ts");
    try {
      const userAgent = readVariables().npm_config_user_agent;
      await createProject({ ...options, name, yes: given.has("yes"), userAgent });
      return 0;
    } catch (error) {
      if (error instanceof FolderError) {
        const { cause, folder } = error;
        throw new WatchfireError("WF_CLI_FOLDER", { what: systemReason(cause), place: { file: folder }, cause });
      }
      if (error instanceof ProjectError) throw new WatchfireError("WF_CLI_USAGE", { what: error.message });
      throw error;
    }
  },
});

/** Runs `init` as the program `create-watchfire` with the given arguments. Resolves with the exit status. */
export const createWatchfire = (words: readonly string[]): Promise<number> =>
  invoke(init, words, "watchfire", "create-watchfire");
