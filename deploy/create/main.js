#!/usr/bin/env node
import { createWatchfire } from "@watchfire/runtime/init";

process.exitCode = await createWatchfire(process.argv.slice(2));
