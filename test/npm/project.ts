import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { inject } from "vitest";
import { TalkingProcess } from "../tools/talking-process.ts";

/**
 * The environment of a user's shell: without variables of this checkout, of npm's script or of vitest. PATH has a Node first,
 * then the machine's npm.
 */
function environment(node: string): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => !/^(npm_|vite|test$|node_env$|node_options$)/i.test(name));
  const folders = (process.env.PATH ?? "").split(delimiter).filter((each) => !each.includes("node_modules"));
  return { ...Object.fromEntries(own), PATH: [dirname(node), ...folders].join(delimiter) };
}

/** A user's project in a separate folder, outside of the checkout. */
export class Project {
  readonly folder: string;
  private readonly node: string;
  private readonly env: NodeJS.ProcessEnv;

  /** @param node the Node of its machine. */
  constructor(folder: string, node = process.execPath) {
    this.folder = folder;
    this.node = node;
    this.env = environment(node);
  }

  /** A project with only a package.json. */
  static empty(node?: string): Project {
    const folder = mkdtempSync(join(inject("projects"), "project-"));
    writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "project", type: "module", private: true }));
    return new Project(folder, node);
  }

  /** A project in a subfolder, on the same machine. */
  below(name: string): Project {
    return new Project(join(this.folder, name), this.node);
  }

  /** Runs a command to its end and returns its output. If it fails, throws with all its output. */
  run(command: string, ...words: string[]): string {
    try {
      return execFileSync(command, words, { cwd: this.folder, env: this.env, encoding: "utf8", stdio: "pipe" });
    } catch (error) {
      const { stdout, stderr } = error as { stdout: string; stderr: string };
      throw new Error(`${command} ${words.join(" ")}\n${stdout}${stderr}`);
    }
  }

  /**
   * Size of the installed packages in megabytes, without caches (which the runtime writes meanwhile), and their number.
   */
  installed(): { readonly megabytes: number; readonly packages: number } {
    const { packages } = JSON.parse(readFileSync(join(this.folder, "node_modules/.package-lock.json"), "utf8"));
    return {
      megabytes: Number.parseInt(this.run("du", "-sm", "--exclude=.cache", "node_modules"), 10),
      packages: Object.values<{ link?: boolean }>(packages).filter(({ link }) => !link).length,
    };
  }

  /** Starts a long-running command. */
  start(command: string, ...words: string[]): TalkingProcess {
    return new TalkingProcess(command, words, { cwd: this.folder, env: this.env, patienceMs: 60_000 });
  }
}
