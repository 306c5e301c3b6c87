#!/usr/bin/env node
import { init } from "../../runtime/cli/init.ts";
import { invoke } from "../../runtime/cli/invoke.ts";

process.exitCode = await invoke(init, process.argv.slice(2), "create-watchfire");
